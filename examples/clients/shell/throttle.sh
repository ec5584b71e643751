#!/bin/sh
# Takes from a limit with redis-cli: throttle.sh KEY COUNT PERIOD
# It prints the status and the header fields of a response. Exit code: 0 allowed, 3 denied, 1 error.
fail=${TIDEGATE_FAIL:-open} # while Tidegate is down: "open" allows, "closed" denies
ms=${TIDEGATE_TIMEOUT_MS:-100}
resp=${TIDEGATE_RESP:-127.0.0.1:6380}
host=${resp%:*} host=${host#[} host=${host%]} # an IPv6 address is in brackets

down() {
    echo "tidegate: no reply, fail-$fail" >&2
    if [ "$fail" = open ]; then echo 200 && exit 0; fi
    echo 503 && echo 'Retry-After: 1' && exit 3
}

# redis-cli reads the token from a variable: other users of the machine can see arguments.
[ -z "$TIDEGATE_TOKEN" ] || export REDISCLI_AUTH="$TIDEGATE_TOKEN"
reply=$(timeout "$((ms / 1000)).$(printf %03d $((ms % 1000)))" \
    redis-cli -h "$host" -p "${resp##*:}" CL.THROTTLE "$1" "$(($2 - 1))" "$2" "$3")

case $reply in '' | 'ERR max number of clients'*) down ;; esac
period=$3
set -f # an error may have a *
set -- $reply # limited or not, limit, remaining, retry time and reset time: seconds, rounded up
case "$# $1" in
'5 0') code=0 seconds=$5 && echo 200 ;;
'5 1') code=3 seconds=$4 && echo 429 && echo "Retry-After: $4" ;;
*) echo "$reply" >&2 && exit 1 ;;
esac
# The limit is -1 if nothing was counted, because the store of the server is down.
if [ "$2" -ge 0 ]; then
    echo "RateLimit-Policy: \"default\";q=$2;w=$period"
    echo "RateLimit: \"default\";r=$3;t=$seconds"
fi
exit "$code"
