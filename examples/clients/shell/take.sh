#!/bin/sh
# Takes from a limit with curl: take.sh KEY LIMIT
# It prints the status and the header fields of a response. Exit code: 0 allowed, 3 denied, 1 error.
fail=${TIDEGATE_FAIL:-open} # while Tidegate is down: "open" allows, "closed" denies
ms=${TIDEGATE_TIMEOUT_MS:-100}

quoted() {
    printf '"%s"' "$(printf %s "$1" | sed 's/["\\]/\\&/g')"
}

# The token is not an argument: other users of the machine can see those.
reply=$(printf %s "${TIDEGATE_TOKEN:+Tidegate-Token: $TIDEGATE_TOKEN}" |
    curl --silent --show-error --include --noproxy '*' --max-time "$((ms / 1000)).$(printf %03d $((ms % 1000)))" \
        --header @- --header 'Content-Type: application/json' \
        --data "{\"key\":$(quoted "$1"),\"limit\":$(quoted "$2")}" \
        "http://${TIDEGATE_HTTP:-127.0.0.1:8380}/v1/take") || reply=
status=$(printf %s "$reply" | sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p')

case $status in
200 | 429)
    echo "$status"
    printf '%s\n' "$reply" | tr -d '\r' | grep -iE '^(retry-after|ratelimit|ratelimit-policy):'
    [ "$status" = 200 ] || exit 3
    ;;
'' | 5*)
    echo "tidegate: no reply, fail-$fail" >&2
    if [ "$fail" = open ]; then echo 200 && exit 0; fi
    echo 503 && echo 'Retry-After: 1' && exit 3
    ;;
*)
    printf '%s\n' "$reply" >&2
    exit 1
    ;;
esac
