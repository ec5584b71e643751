"""redis-py, driven by a test. Arguments: PORT [PROTOCOL [TOKEN]]. Input: lines of JSON as in lines.js."""

import json
import sys

import redis


def connect(port, protocol="", token=""):
    options = {"port": int(port)}
    if protocol:
        options["protocol"] = int(protocol)
    if token:
        options["password"] = token
    return redis.Redis(**options)


def encoded(words):
    return [word.encode("latin-1") for word in words]


def shown(reply):
    """Returns a reply as JSON: a byte is a character, an error its class and its text."""
    if isinstance(reply, Exception):
        return {"error": type(reply).__name__, "message": str(reply)}
    if isinstance(reply, bytes):
        return reply.decode("latin-1")
    if isinstance(reply, list):
        return [shown(each) for each in reply]
    if isinstance(reply, dict):
        return {shown(name): shown(value) for name, value in reply.items()}
    return reply


def call(client, words):
    try:
        return client.execute_command(*encoded(words))
    except redis.ResponseError as error:
        return error


def pipeline(client, requests):
    return together(client.pipeline(transaction=False), requests)


def transaction(client, requests):
    """The default of redis-py: between MULTI and EXEC."""
    return together(client.pipeline(), requests)


def together(several, requests):
    for words in requests:
        several.execute_command(*encoded(words))
    return several.execute(raise_on_error=False)


def restart(client, words):
    say("restart?")
    sys.stdin.readline()
    return call(client, words)


def say(value):
    print(json.dumps(value), flush=True)


WAYS = {"call": call, "pipeline": pipeline, "transaction": transaction, "restart": restart}

client = connect(*sys.argv[1:])
while line := sys.stdin.readline():
    ((way, what),) = json.loads(line).items()
    say(shown(WAYS[way](client, what)))
