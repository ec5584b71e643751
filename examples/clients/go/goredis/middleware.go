// Middleware for net/http: limits the requests of each client. It needs go-redis 5.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"strings"

	"gopkg.in/redis.v5"
)

const count, period = 5, 60 // 5 requests in 60 seconds, all 5 at once from rest

// go-redis 5 does not repeat a command unless MaxRetries is set: it could spend twice.
var tidegate = redis.NewClient(&redis.Options{
	Addr: setting("TIDEGATE_RESP", "127.0.0.1:6380"), Password: os.Getenv("TIDEGATE_TOKEN"),
	DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
})

// isReply returns true for an error that the server replies: the token or the request is wrong.
func isReply(err error) bool {
	return reflect.TypeOf(err) == reflect.TypeOf(redis.Nil) && !strings.HasPrefix(err.Error(), "ERR max number of clients")
}

// keyOf returns the key of a client. An IPv6 client can use every address of its /64.
func keyOf(client netip.AddrPort) string {
	ip, bits := client.Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	return "ip:" + netip.PrefixFrom(ip, bits).Masked().String()
}

// admit sets header fields, and returns the status of the response.
func admit(r *http.Request, fields http.Header) int {
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	command := redis.NewSliceCmd("CL.THROTTLE", keyOf(client), count-1, count, period)
	if err := tidegate.Process(command); err != nil {
		log.Print("tidegate: ", err)
		if isReply(err) {
			return 500
		}
		return down(fields)
	}
	reply := command.Val() // limited, limit, remaining, retry time and reset time; seconds are rounded up
	status, seconds := 200, reply[4]
	if reply[0] == int64(1) {
		status, seconds = 429, reply[3]
		fields.Set("Retry-After", fmt.Sprint(seconds))
	}
	if reply[1] != int64(-1) { // -1 if nothing was counted, because the store of the server is down
		fields.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, reply[1], period))
		fields.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, reply[2], seconds))
	}
	return status
}
