// ioredis, told by a test what to say: PORT [PROTOCOL [TOKEN]].
"use strict";

const { Redis, ReplyError } = require("ioredis");
const { follow } = require("./lines.js");

const [port, protocol, token] = process.argv.slice(2);
const redis = new Redis(Number(port), {
  ...(protocol && { protocol: Number(protocol), replyMapping: protocol === "3" ? "resp3" : "legacy" }),
  ...(token && { password: token }),
});
// While there is no server, each attempt to connect is an error that somebody has to hear.
redis.on("error", () => {});

follow({
  refusal: ReplyError,
  call: ([name, ...rest]) => redis.call(name.toString(), ...rest),
  pipeline: async (requests) => {
    const several = redis.pipeline();
    requests.forEach(([name, ...rest]) => several.call(name.toString(), ...rest));
    return (await several.exec()).map(([error, reply]) => error ?? reply);
  },
  // It sends again what got no answer.
  lost: async () => {},
  end: () => redis.disconnect(),
});
