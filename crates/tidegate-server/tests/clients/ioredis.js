// ioredis, driven by a test. Arguments: PORT [PROTOCOL [TOKEN]].
"use strict";

const { Redis, ReplyError } = require("ioredis");
const { follow } = require("./lines.js");

const [port, protocol, token] = process.argv.slice(2);
const redis = new Redis(Number(port), {
  ...(protocol && { protocol: Number(protocol), replyMapping: protocol === "3" ? "resp3" : "legacy" }),
  ...(token && { password: token }),
});
// While there is no server, each connection attempt emits an error. An error event without a listener is fatal.
redis.on("error", () => {});

follow({
  refusal: ReplyError,
  call: ([name, ...rest]) => redis.call(name.toString(), ...rest),
  pipeline: async (requests) => {
    const several = redis.pipeline();
    requests.forEach(([name, ...rest]) => several.call(name.toString(), ...rest));
    return (await several.exec()).map(([error, reply]) => error ?? reply);
  },
  // ioredis resends requests without a reply, so there is nothing to wait for.
  lost: async () => {},
  end: () => redis.disconnect(),
});
