// node-redis, told by a test what to say: PORT [PROTOCOL [TOKEN]].
"use strict";

const { createClient, ErrorReply } = require("redis");
const { follow } = require("./lines.js");

const [port, protocol, token] = process.argv.slice(2);
const client = createClient({
  socket: { port: Number(port) },
  ...(protocol && { RESP: Number(protocol) }),
  ...(token && { password: token }),
});
// While there is no server, each attempt to connect is an error that somebody has to hear.
client.on("error", () => {});

client.connect().then(() =>
  follow({
    refusal: ErrorReply,
    call: (words) => client.sendCommand(words),
    // Whatever is said in one turn is sent together.
    pipeline: async (requests) => {
      const outcomes = await Promise.allSettled(requests.map((words) => client.sendCommand(words)));
      return outcomes.map(({ reason, value }) => reason ?? value);
    },
    // What is said before it has noticed would be refused.
    lost: () => new Promise((noticed) => client.once("reconnecting", noticed)),
    end: () => client.destroy(),
  }),
);
