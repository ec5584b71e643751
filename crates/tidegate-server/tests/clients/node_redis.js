// node-redis, driven by a test. Arguments: PORT [PROTOCOL [TOKEN]].
"use strict";

const { createClient, ErrorReply } = require("redis");
const { follow } = require("./lines.js");

const [port, protocol, token] = process.argv.slice(2);
const client = createClient({
  socket: { port: Number(port) },
  ...(protocol && { RESP: Number(protocol) }),
  ...(token && { password: token }),
});
// While there is no server, each connection attempt emits an error. An error event without a listener is fatal.
client.on("error", () => {});

client.connect().then(() =>
  follow({
    refusal: ErrorReply,
    call: (words) => client.sendCommand(words),
    // Requests of one turn of the event loop are sent together.
    pipeline: async (requests) => {
      const outcomes = await Promise.allSettled(requests.map((words) => client.sendCommand(words)));
      return outcomes.map(({ reason, value }) => reason ?? value);
    },
    // A request before the client has noticed the lost connection would fail.
    lost: () => new Promise((noticed) => client.once("reconnecting", noticed)),
    end: () => client.destroy(),
  }),
);
