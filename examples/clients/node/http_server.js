// An HTTP server of Node.js without a framework, which limits the requests of each client. It needs ioredis.
"use strict";

const http = require("node:http");
const { Redis } = require("ioredis");

const [COUNT, PERIOD] = [5, 60]; // 5 requests in 60 seconds, all 5 at once from rest
const FAIL = process.env.TIDEGATE_FAIL || "open"; // while Tidegate is down: "open" allows, "closed" denies
const TIMEOUT = Number(process.env.TIDEGATE_TIMEOUT_MS || 100);

const tidegate = new Redis(`redis://${process.env.TIDEGATE_RESP || "127.0.0.1:6380"}`, {
  password: process.env.TIDEGATE_TOKEN, lazyConnect: true,
  connectTimeout: TIMEOUT, commandTimeout: TIMEOUT, socketTimeout: TIMEOUT,
  maxRetriesPerRequest: 0, // a repeated request could spend twice
  enableOfflineQueue: false, // without a connection a request fails at once
});
let rejected = false; // the server replied that the token is wrong
tidegate.on("error", (error) => {
  rejected = /^(WRONGPASS|NOAUTH)/.test(error.message);
  console.error(`tidegate: ${error.message}`);
});

/** Takes from the limit of a key. Returns the status and the header fields of the response. */
async function take(key) {
  let reply;
  try {
    reply = await tidegate.call("CL.THROTTLE", key, COUNT - 1, COUNT, PERIOD);
  } catch (error) {
    if (rejected || error.name === "ReplyError") throw error; // the token or the request is wrong
    return FAIL === "open" ? [200, {}] : [503, { "Retry-After": 1 }];
  }
  const [limited, limit, remaining, retryAfter, resetAfter] = reply; // seconds, rounded up
  const fields = limited ? { "Retry-After": retryAfter } : {};
  if (limit >= 0) { // -1 if nothing was counted, because the store of the server is down
    fields["RateLimit-Policy"] = `"default";q=${limit};w=${PERIOD}`;
    fields["RateLimit"] = `"default";r=${remaining};t=${limited ? retryAfter : resetAfter}`;
  }
  return [limited ? 429 : 200, fields];
}

/** Returns the key of an address. An IPv6 client can use every address of its /64. */
function keyOf(address) {
  if (!address.includes(":") || address.includes(".")) return `ip:${address.replace("::ffff:", "")}`;
  const [head, tail] = address.split("::").map((half) => half.split(":"));
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail] : head;
  return `ip:${groups.slice(0, 4).join(":")}::/64`;
}

const server = http.createServer(async (request, response) => {
  try {
    const [status, fields] = await take(keyOf(request.socket.remoteAddress));
    response.writeHead(status, { "Content-Type": "text/plain", ...fields });
    response.end(status === 200 ? "hello" : "denied");
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});
const listen = () => server.listen(Number(process.env.PORT || 8080), "127.0.0.1");
tidegate.connect().then(listen, listen); // ioredis connects again by itself
