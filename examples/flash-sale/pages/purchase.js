// Talks to the shop: a signed link, the purchase under one key, the payment.
//
// A request whose answer is lost may have been carried out. It is repeated under the same key,
// after pauses that grow, so that no buyer buys or pays twice and a shop in trouble is not overloaded.

const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 8000, 8000];
const TIMEOUT_MS = 15_000;

/** Buys one. `watch.place` gets the place in the queue, `watch.again` each pause; `watch.signal` gives up. */
export async function buy(sale, key, watch) {
  let url;
  return insist(watch, async () => {
    if (!url) {
      const link = await post(`/api/sales/${sale}/link`, { signal: watch.signal });
      if (link.result !== "link") return link;
      url = link.url;
    }
    return post(url, {
      signal: watch.signal,
      headers: { "idempotency-key": key, "content-type": "application/json" },
      body: JSON.stringify({ quantity: 1 }),
      place: watch.place,
    });
  });
}

/** Pays for what is reserved. Paying twice charges once. */
export async function pay(url, watch) {
  return insist(watch, () => post(url, { signal: watch.signal }));
}

/** What the shop says of the sale, and how long the answer took. */
export async function look() {
  const asked = performance.now();
  const response = await fetch("/api/sale", { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`GET /api/sale: ${response.status}`);
  const sale = await response.json();
  return { sale, tripMs: performance.now() - asked };
}

/**
 * Repeats what was not answered, or answered by "unavailable", until the pauses are used up.
 * The answer says by `isUnsure` whether one of the tries may have been carried out without a word of it.
 */
async function insist(watch, attempt) {
  for (let tries = 0; ; tries++) {
    const answer = await attempt().catch(unanswered);
    if (answer.result !== "unavailable") return { ...answer, isUnsure: tries > 0 };
    if (watch.signal.aborted) return { result: "left_the_line", isUnsure: true };
    if (tries === PAUSES_MS.length) return { ...answer, isUnsure: true };
    // Not all who were cut off together come back together.
    const pauseMs = Math.max(PAUSES_MS[tries] * (0.75 + Math.random() / 2), answer.retry_after_ms ?? 0);
    watch.again(pauseMs);
    await pause(pauseMs, watch.signal);
  }
}

function unanswered() {
  return { result: "unavailable", message: "The shop does not answer. Please try again." };
}

function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

async function post(url, { signal, headers = {}, body, place = () => {} }) {
  const timeout = new Timeout(signal);
  try {
    const response = await fetch(url, {
      method: "POST",
      cache: "no-store",
      headers: { accept: "application/json, application/x-ndjson", ...headers },
      body,
      signal: timeout.signal,
    });
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("application/x-ndjson")) return await lastOf(response.body, place, timeout);
    const said = await response.json().catch(() => ({}));
    const retry_after_ms = said.retry_after_ms ?? retryAfter(response);
    return { ...said, result: said.result ?? named(response.status), retry_after_ms };
  } finally {
    timeout.end();
  }
}

/** Reads places in the queue until the line with a status comes, which is the answer. */
async function lastOf(stream, place, timeout) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    // A line that breaks off says nothing about the order: a repetition under the same key returns it.
    if (done) throw new Error("the line ended without an answer");
    const lines = (text + value).split("\n");
    text = lines.pop();
    for (const line of lines.filter((line) => line.trim() !== "")) {
      const said = JSON.parse(line);
      if (said.status !== undefined) return said;
      place(said);
      timeout.renew(said.wait_ms);
    }
  }
}

/** Aborts a request that is not answered in time, but not one that waits in the queue. */
class Timeout {
  #control = new AbortController();
  #timer;

  constructor(signal) {
    this.signal = AbortSignal.any([signal, this.#control.signal]);
    this.renew(0);
  }

  renew(waitMs) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#control.abort(), waitMs + TIMEOUT_MS);
  }

  end() {
    clearTimeout(this.#timer);
  }
}

/** The result of an answer that names none, such as that of a proxy in between. */
function named(status) {
  if (status === 429) return "limited";
  return status >= 500 ? "unavailable" : "refused";
}

function retryAfter(response) {
  const seconds = Number(response.headers.get("retry-after"));
  return seconds > 0 ? seconds * 1000 : undefined;
}
