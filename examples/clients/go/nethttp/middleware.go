// Middleware for net/http: the rules of Tidegate limit requests. It needs no package.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

var tidegate = http.Client{
	Timeout:   timeout,
	Transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute},
}

// ask posts the attributes of a request, once: a repeated request could spend twice. An error means a server that is down.
func ask(r *http.Request) (*http.Response, error) {
	ip, _, _ := net.SplitHostPort(r.RemoteAddr)
	attributes := map[string]string{"ip": ip, "method": r.Method, "path": r.URL.EscapedPath()}
	body, _ := json.Marshal(map[string]any{"attributes": attributes, "max_wait_ms": 0})
	url := "http://" + setting("TIDEGATE_HTTP", "127.0.0.1:8380") + "/v1/admit"
	request, _ := http.NewRequest("POST", url, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Tidegate-Token", os.Getenv("TIDEGATE_TOKEN"))
	reply, err := tidegate.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	detail, err := io.ReadAll(reply.Body) // its connection can then be used again
	if reply.StatusCode >= 500 {
		err = fmt.Errorf("%s: %s", reply.Status, detail)
	}
	return reply, err
}

// admit sets header fields, and returns the status of the response.
func admit(r *http.Request, fields http.Header) int {
	reply, err := ask(r)
	if err != nil {
		log.Print("tidegate: ", err)
		return down(fields)
	}
	if status := reply.StatusCode; status != 200 && status != 403 && status != 429 {
		log.Print("tidegate: ", reply.Status) // the token or the request is wrong
		return 500
	}
	for _, name := range []string{"Retry-After", "RateLimit-Policy", "RateLimit"} {
		if value := reply.Header.Get(name); value != "" {
			fields.Set(name, value)
		}
	}
	return reply.StatusCode
}
