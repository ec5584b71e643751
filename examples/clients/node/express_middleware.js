// Express middleware: the rules of Tidegate limit requests. It needs express 5 and ioredis.
"use strict";

const express = require("express");
const { Redis } = require("ioredis");

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

/** Decides by the rules. Returns the status and the header fields of the response. */
async function admit(attributes) {
  let list;
  try {
    list = await tidegate.call("TG.ADMIT", "MAXWAIT", 0, ...Object.entries(attributes).flat());
  } catch (error) {
    if (rejected || error.name === "ReplyError") throw error; // the token or the request is wrong
    return FAIL === "open" ? [200, {}] : [503, { "Retry-After": "1" }];
  }
  // The reply is a list of names and values in turn.
  const reply = (name) => list[list.indexOf(name) + 1];
  // There is no time to retry if the request was allowed, or is denied by a rule in any case.
  const hasRetry = reply("retry_after") >= 0;
  const seconds = Math.ceil(reply(hasRetry ? "retry_after" : "reset_after") / 1000);
  const fields = hasRetry ? { "Retry-After": String(seconds) } : {};
  if (reply("limit") >= 0) { // -1 if nothing was counted
    fields["RateLimit-Policy"] = `"${reply("rule")}";q=${reply("limit")}`;
    fields["RateLimit"] = `"${reply("rule")}";r=${reply("remaining")};t=${seconds}`;
  }
  return [reply("allowed") ? 200 : hasRetry ? 429 : 403, fields];
}

async function limited(request, response, next) {
  const { ip, method, baseUrl, path } = request;
  const [status, fields] = await admit({ ip, method, path: baseUrl + path });
  response.set(fields);
  if (status === 200) next();
  else response.status(status).type("text").send("denied");
}

const app = express();
app.enable("case sensitive routing"); // as in rules
app.enable("strict routing");
app.use(limited); // Express 5 replies 500 if it throws
app.get("/", (request, response) => response.type("text").send("hello"));

const listen = () => app.listen(Number(process.env.PORT || 8080), "127.0.0.1");
tidegate.connect().then(listen, listen); // ioredis connects again by itself
