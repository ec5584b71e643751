package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

var timeout = milliseconds("TIDEGATE_TIMEOUT_MS", "100")

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func milliseconds(name, otherwise string) time.Duration {
	number, err := strconv.Atoi(setting(name, otherwise))
	if err != nil || number <= 0 {
		log.Fatalf("%s is a number of milliseconds", name)
	}
	return time.Duration(number) * time.Millisecond
}

// down returns the status while Tidegate is down: "open" allows, "closed" denies.
func down(fields http.Header) int {
	if setting("TIDEGATE_FAIL", "open") == "open" {
		return 200
	}
	fields.Set("Retry-After", "1")
	return 503
}

func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := admit(r, w.Header()); status != 200 {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hello(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "hello")
}

func main() {
	service := limited(http.HandlerFunc(hello))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+setting("PORT", "8080"), service))
}
