// What a test tells a client to say, and what the client got. Each is a line of JSON:
//
//   {"call": [word, …]}          -> the reply
//   {"pipeline": [[word, …], …]} -> the replies, of all that were sent before the first was read
//   {"restart": [word, …]}       -> "restart?", and when another line has come, the reply of another server
//
// A character of a word is a byte. A reply that is an error is {"error": class, "message": text}.
"use strict";

const readline = require("node:readline");

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const bytes = (words) => words.map((word) => Buffer.from(word, "latin1"));

// Does what the lines say, with what is particular to a client: `refusal` is the class of errors that a server sends,
// `call` and `pipeline` take words of bytes, `lost` resolves when the client knows that its connection is gone, `end`
// leaves.
exports.follow = async ({ refusal, call, pipeline, lost, end }) => {
  const told = (reply) => {
    if (!(reply instanceof Error)) return reply;
    if (!(reply instanceof refusal)) throw reply;
    return { error: refusal.name, message: reply.message };
  };
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const outcome = (words) => call(bytes(words)).catch((error) => error);
  const ways = {
    call: async (words) => told(await outcome(words)),
    pipeline: async (requests) => (await pipeline(requests.map(bytes))).map(told),
    restart: async (words) => {
      const noticed = lost();
      say("restart?");
      await lines.next();
      await noticed;
      return told(await outcome(words));
    },
  };
  for await (const line of { [Symbol.asyncIterator]: () => lines }) {
    const [[way, what]] = Object.entries(JSON.parse(line));
    say(await ways[way](what));
  }
  end();
};
