// The buyers' page: how long until the opening, what is left, one button, and what came of it.
//
// The shop's word counts. The countdown is set anew by every answer to `GET /api/sale`, half a round trip later,
// and a request that is early all the same gets "not_open", and the countdown starts again.

import { buy, look, pay } from "./purchase.js";
import { meaningOf } from "./results.js";
import { badge, clock, money, seconds, whole } from "./words.js";

const LOOK_MS = 1000;
const LOOK_HIDDEN_MS = 10_000;
const TICK_MS = 200;
/** Between two questions about a payment whose time is over. */
const SETTLE_MS = 8000;

const page = (id) => document.getElementById(id);
/** Never goes back, and still means something after the page was loaded again. */
const now = () => performance.timeOrigin + performance.now();

/** What the shop said last of the sale. */
let sale = null;
/** How often in a row it said nothing. */
let missed = 0;
/** A purchase or a payment that is under way: what can end it, and its place in the queue. */
let underWay = null;
/** Until when the buttons rest because there were too many requests. */
let restsUntil = 0;
/** What this visitor has: `{ order, pay, until, isAsked, paid }`; `isAsked`: a payment may have been carried out. */
let mine = null;
/** Ends the pause between two looks. */
let lookNow = () => {};

const kept = {
  name: (what) => `flash-sale ${sale.id} ${what}`,
  get: (what) => JSON.parse(sessionStorage.getItem(kept.name(what))),
  set: (what, value) => sessionStorage.setItem(kept.name(what), JSON.stringify(value)),
  drop: (what) => sessionStorage.removeItem(kept.name(what)),
};

/** Whether a wish of this visitor may have been carried out without a word of it: its key is kept. */
const isUnsure = () => kept.get("key") !== null;

/** One key for one wish, until it is known what became of it. */
function key() {
  const known = kept.get("key");
  if (known) return known;
  // `randomUUID` exists only where the page came by TLS or from the own machine.
  const bytes = () => [...crypto.getRandomValues(new Uint8Array(16))];
  const fresh = crypto.randomUUID?.() ?? bytes().map((byte) => byte.toString(16).padStart(2, "0")).join("");
  kept.set("key", fresh);
  return fresh;
}

async function watchSale() {
  for (;;) {
    try {
      const { sale: seen, tripMs } = await look();
      missed = 0;
      heard(seen, now() - tripMs / 2);
    } catch {
      missed += 1;
    }
    show();
    // Jitter spreads the visitors; backoff protects a shop that is in trouble.
    const pauseMs = Math.min(LOOK_HIDDEN_MS, LOOK_MS * 2 ** missed) + Math.random() * 500;
    await new Promise((done) => {
      lookNow = done;
      setTimeout(done, document.hidden ? LOOK_HIDDEN_MS : pauseMs);
    });
  }
}

/** Takes what the shop says of the sale, true at this moment. */
function heard(seen, at) {
  const isNew = sale?.id !== seen.id;
  sale = { ...seen, opensAt: at + seen.opens_in_ms, closesAt: at + seen.closes_in_ms };
  if (!isNew) return;
  mine = kept.get("mine");
  if (mine) say({ result: mine.paid ? "was_paid" : "reserved" });
  else if (isUnsure()) say({ result: "unsure" });
}

/** What the sale is doing at this moment. */
function phase() {
  if (sale.state === "over" || now() >= sale.closesAt) return "over";
  return now() < sale.opensAt ? "before" : "open";
}

async function onBuy() {
  if (underWay || mine) return;
  const wasUnsure = isUnsure();
  const answer = await carryOut((watch) => buy(sale.id, key(), watch));
  const mayHaveOne = wasUnsure || answer.isUnsure;
  if (Number.isInteger(answer.left)) sale.left = answer.left;
  if (answer.result === "not_open") sale.opensAt = now() + answer.opens_in_ms;
  if (answer.result === "limited" && (answer.left !== 0 || mayHaveOne)) rest(answer.retry_after_ms);
  if (answer.result === "paused") rest(answer.retry_after_ms);
  // "None left" is no answer to a visitor who may have the last one.
  const isNoAnswer = mayHaveOne && answer.result === "limited";
  const { isFinal, hasOrder } = say(isNoAnswer ? { ...answer, left: undefined } : answer);
  if (isFinal || !mayHaveOne) kept.drop("key");
  if (hasOrder) have({ order: answer.order, pay: answer.pay, until: now() + answer.pay_within_ms });
  show();
  focusIfLost(mine ? page("pay") : page("buy"));
}

async function onPay() {
  if (underWay || !mine) return;
  const wasAsked = mine.isAsked === true;
  have({ ...mine, isAsked: true });
  const answer = await carryOut((watch) => pay(mine.pay, watch));
  const { isFinal } = say({ ...answer, left: undefined });
  const isLate = now() >= mine.until;
  if (answer.result === "paid") have({ ...mine, paid: true });
  else if (answer.result === "expired" || answer.result === "unknown_order" || (isLate && isFinal)) lose();
  else {
    have({ ...mine, isAsked: wasAsked || answer.isUnsure });
    if (answer.result === "limited") rest(answer.retry_after_ms);
    else if (isLate) rest(SETTLE_MS);
  }
  show();
  focusIfLost(mine ? page("pay") : page("buy"));
}

/** The time to pay is over. A payment that got no answer may have been in time: only the shop knows. */
function onLate() {
  if (!mine.isAsked) {
    lose();
    say({ result: "expired" });
  } else if (now() >= restsUntil) {
    onPay();
  }
}

function rest(ms = 1000) {
  restsUntil = now() + ms;
}

/** Runs one thing at a time, with its place in the queue and its pauses shown. */
async function carryOut(task) {
  const control = new AbortController();
  underWay = { control, line: null };
  write(page("result"), "");
  show();
  const answer = await task({
    signal: control.signal,
    place: ({ place, wait_ms }) => {
      const began = underWay.line?.began ?? now();
      underWay.line = { place, began, turnAt: now() + wait_ms };
      show();
    },
    again: (ms) => {
      underWay.line = null;
      say({ result: "again", retry_after_ms: ms });
      show();
    },
  });
  underWay = null;
  return answer;
}

function have(order) {
  mine = order;
  kept.set("mine", order);
}

function lose() {
  mine = null;
  kept.drop("mine");
}

/** Shows what an answer means, once. */
function say(answer) {
  const meaning = meaningOf(answer);
  const result = page("result");
  result.className = `result ${meaning.tone}`;
  write(result, meaning.text);
  return meaning;
}

function show() {
  write(page("connection"), missed > 1 ? "The shop does not answer at the moment. This page keeps trying." : "");
  if (!sale) return;
  if (mine && !mine.paid && !underWay && now() >= mine.until) onLate();
  if (restsUntil > 0 && now() >= restsUntil) {
    restsUntil = 0;
    if (!underWay && !mine) say({ result: "rested" });
  }
  showSale();
  showButton();
  showLine();
  showOrder();
}

function showSale() {
  const state = phase();
  document.title = `${sale.name} · flash sale`;
  write(page("name"), sale.name);
  write(page("price"), money(sale.price_cents));
  page("state").hidden = false;
  page("state").className = `badge ${sale.left > 0 ? state : ""}`;
  write(page("state"), badge(state, sale.left));
  write(page("stock"), sale.left > 0 ? `${whole(sale.left)} of ${whole(sale.stock)} left` : "None left");
  page("bar").style.width = `${sale.stock > 0 ? (100 * sale.left) / sale.stock : 0}%`;
  page("bar").classList.toggle("low", sale.left * 5 <= sale.stock);
  page("countdown").hidden = state !== "before";
  write(page("opens"), clock(sale.opensAt - now()));
  write(page("clock"), state === "open" ? `ends in ${clock(sale.closesAt - now())}` : "");
}

function showButton() {
  const button = page("buy");
  const [text, isActive] = label();
  button.hidden = mine !== null;
  button.disabled = !isActive;
  write(button, text);
}

/** What the button says, and whether it can be pressed. */
function label() {
  const state = phase();
  if (underWay) return [underWay.line ? "In line …" : "One moment …", false];
  if (state === "before") return [`Buy for ${money(sale.price_cents)}`, false];
  // A visitor who may have one can always ask, also when no other is left.
  const mayHaveOne = isUnsure();
  if (state === "over" && !mayHaveOne) return ["The sale is over", false];
  if (sale.left === 0 && !mayHaveOne) return ["Sold out", false];
  if (now() < restsUntil) return [`Try again in ${seconds(restsUntil - now())}`, false];
  return [mayHaveOne ? "Ask again" : `Buy for ${money(sale.price_cents)}`, true];
}

function showLine() {
  const line = underWay?.line;
  page("line").hidden = !line;
  if (!line) return;
  const leftMs = Math.max(0, line.turnAt - now());
  write(page("place"), whole(Math.max(1, line.place)));
  write(page("wait"), leftMs > 0 ? `about ${seconds(leftMs)}` : "it is your turn");
  const wholeMs = line.turnAt - line.began;
  page("progress").value = wholeMs > 0 ? Math.min(1, 1 - leftMs / wholeMs) : 1;
}

function showOrder() {
  page("reservation").hidden = mine === null;
  if (!mine) return;
  const isDue = !mine.paid && mine.pay !== undefined;
  write(page("order"), mine.order);
  page("due").hidden = page("pay").hidden = !isDue;
  const restMs = restsUntil - now();
  page("pay").disabled = underWay !== null || restMs > 0;
  const text = restMs > 0 ? `Try again in ${seconds(restMs)}` : `Pay ${money(sale.price_cents)}`;
  write(page("pay"), underWay ? "Paying …" : text);
  write(page("pay-clock"), clock(mine.until - now()));
}

/** Says a thing once: what is written again is read aloud again. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button that was switched off while it had the focus has lost it. */
function focusIfLost(element) {
  const isLost = !document.activeElement || document.activeElement === document.body;
  if (isLost && !element.disabled && !element.hidden) element.focus();
}

page("buy").addEventListener("click", onBuy);
page("pay").addEventListener("click", onPay);
page("leave").addEventListener("click", () => underWay?.control.abort());
document.addEventListener("visibilitychange", () => document.hidden || lookNow());
setInterval(show, TICK_MS);
watchSale();
