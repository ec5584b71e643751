"""FastAPI middleware: the rules of Tidegate limit requests. It needs fastapi, uvicorn and redis-py."""

import logging
import os

import redis.asyncio as redis
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

FAIL = os.environ.get("TIDEGATE_FAIL", "open")  # while Tidegate is down: "open" allows, "closed" denies
TIMEOUT = int(os.environ.get("TIDEGATE_TIMEOUT_MS", "100")) / 1000

app = FastAPI()
tidegate = redis.Redis.from_pool(redis.BlockingConnectionPool.from_url(
    f"redis://{os.environ.get('TIDEGATE_RESP', '127.0.0.1:6380')}",
    password=os.environ.get("TIDEGATE_TOKEN"), protocol=3, decode_responses=True,
    timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, socket_timeout=TIMEOUT,
    retry=Retry(NoBackoff(), 0),  # a repeated request could spend twice
))


async def admit(**attributes: str | bytes) -> tuple[int, dict[str, str]]:
    """Decides by the rules. Returns the status and the header fields of the response."""
    pairs = (word for pair in attributes.items() for word in pair)
    try:
        reply = await tidegate.execute_command("TG.ADMIT", "MAXWAIT", 0, *pairs)
    except (redis.ConnectionError, redis.TimeoutError) as error:
        if isinstance(error, redis.AuthenticationError):
            raise  # the token is wrong
        logging.error("tidegate: %s", error)
        return (200, {}) if FAIL == "open" else (503, {"Retry-After": "1"})
    rule, retry_after = reply["rule"], reply["retry_after"]
    # There is no time to retry if the request was allowed, or is denied by a rule in any case.
    seconds = -(-(reply["reset_after"] if retry_after < 0 else retry_after) // 1000)  # rounded up
    fields = {} if retry_after < 0 else {"Retry-After": str(seconds)}
    if reply["limit"] >= 0:  # -1 if nothing was counted
        fields["RateLimit-Policy"] = f'"{rule}";q={reply["limit"]}'
        fields["RateLimit"] = f'"{rule}";r={reply["remaining"]};t={seconds}'
    return 200 if reply["allowed"] else 403 if retry_after < 0 else 429, fields


@app.middleware("http")
async def limited(request: Request, call_next):
    ip, path = request.client.host, request.scope["raw_path"]
    status, fields = await admit(ip=ip, path=path, method=request.method)
    response = await call_next(request) if status == 200 else PlainTextResponse("denied", status)
    response.headers.update(fields)
    return response


@app.get("/")
async def hello() -> PlainTextResponse:
    return PlainTextResponse("hello")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8080")), proxy_headers=False)
