// The protocol between a test and a client. Each request of the test and each reply of the client is a line of JSON:
//
//   {"call": [word, …]}          -> the reply
//   {"pipeline": [[word, …], …]} -> the replies; all requests are sent before the first reply is read
//   {"restart": [word, …]}       -> "restart?", then, after one more line, the reply of the new server
//
// A character of a word is a byte. An error reply is {"error": class, "message": text}.
"use strict";

const readline = require("node:readline");

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const bytes = (words) => words.map((word) => Buffer.from(word, "latin1"));

// Executes the lines with the functions of a client: `refusal` is the class of error replies, `call` and `pipeline` send
// words of bytes, `lost` resolves when the client has noticed that its connection is closed, `end` disconnects.
exports.follow = async ({ refusal, call, pipeline, lost, end }) => {
  const shown = (reply) => {
    if (!(reply instanceof Error)) return reply;
    if (!(reply instanceof refusal)) throw reply;
    return { error: refusal.name, message: reply.message };
  };
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const outcome = (words) => call(bytes(words)).catch((error) => error);
  const ways = {
    call: async (words) => shown(await outcome(words)),
    pipeline: async (requests) => (await pipeline(requests.map(bytes))).map(shown),
    restart: async (words) => {
      const noticed = lost();
      say("restart?");
      await lines.next();
      await noticed;
      return shown(await outcome(words));
    },
  };
  for await (const line of { [Symbol.asyncIterator]: () => lines }) {
    const [[way, what]] = Object.entries(JSON.parse(line));
    say(await ways[way](what));
  }
  end();
};
