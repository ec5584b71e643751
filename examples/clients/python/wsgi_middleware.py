"""WSGI middleware, for Flask or Django: limits the requests of each client. It needs redis-py."""

import ipaddress
import os
import sys
from wsgiref.simple_server import make_server

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

LIMIT, WINDOW = "5/60s", 60
FAIL = os.environ.get("TIDEGATE_FAIL", "open")  # while Tidegate is down: "open" allows, "closed" denies
TIMEOUT = int(os.environ.get("TIDEGATE_TIMEOUT_MS", "100")) / 1000

tidegate = redis.Redis.from_url(
    f"redis://{os.environ.get('TIDEGATE_RESP', '127.0.0.1:6380')}",
    password=os.environ.get("TIDEGATE_TOKEN"), protocol=3, decode_responses=True,
    socket_connect_timeout=TIMEOUT, socket_timeout=TIMEOUT,
    retry=Retry(NoBackoff(), 0),  # a repeated request could spend twice
)


def take(key):
    """Takes from the limit of a key. Returns the status and the header fields of the response."""
    try:
        reply = tidegate.execute_command("TG.TAKE", key, "LIMIT", LIMIT)
    except (redis.ConnectionError, redis.TimeoutError) as error:
        if isinstance(error, redis.AuthenticationError):
            raise  # the token is wrong
        print(f"tidegate: {error}", file=sys.stderr)
        return ("200 OK", []) if FAIL == "open" else ("503 Service Unavailable", [("Retry-After", "1")])
    seconds = -(-reply["reset_after" if reply["allowed"] else "retry_after"] // 1000)  # rounded up
    fields = [] if reply["allowed"] else [("Retry-After", str(seconds))]
    if reply["limit"] >= 0:  # -1 if nothing was counted, because the store of the server is down
        fields.append(("RateLimit-Policy", f'"default";q={reply["limit"]};w={WINDOW}'))
        fields.append(("RateLimit", f'"default";r={reply["remaining"]};t={seconds}'))
    return "200 OK" if reply["allowed"] else "429 Too Many Requests", fields


def limited(app):
    def middleware(environ, start_response):
        client = ipaddress.ip_address(environ["REMOTE_ADDR"])
        if client.version == 6:  # a client can use every address of its /64
            client = client.ipv4_mapped or ipaddress.ip_network((int(client), 64), strict=False)
        status, fields = take(f"ip:{client}")
        if status == "200 OK":
            return app(environ, lambda status, own, *rest: start_response(status, own + fields, *rest))
        start_response(status, [("Content-Type", "text/plain"), *fields])
        return [b"denied"]
    return middleware


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


if __name__ == "__main__":
    make_server("127.0.0.1", int(os.environ.get("PORT", "8080")), limited(hello)).serve_forever()
