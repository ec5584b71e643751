// The shopkeeper's page: totals as numbers, and what happens each second as lines.
//
// The shop counts; this page takes differences of what it counted, over the time the shop says has passed.
// It draws every second, whether there was an answer or not: then the line has a gap, and the page says so.

import { Chart } from "./chart.js";
import { badge, clock, whole } from "./words.js";

const EVERY_MS = 1000;
const TIMEOUT_MS = 4000;

const page = (id) => document.getElementById(id);

const rates = new Chart(page("rates"), page("rates-legend"), [
  ["requests", "Requests"],
  ["admitted", "Admitted"],
  ["sold", "Sold"],
  ["refused", "Refused"],
  ["conflicts", "Conflicts"],
]);
const latency = new Chart(page("latency"), page("latency-legend"), [
  ["p50", "Half within (p50)"],
  ["p99", "99 of 100 within (p99)"],
]);

/** The numbers before these, of which the differences are taken. */
let before = null;
let answeredAt = 0;
let lastNumbers = "There were no numbers yet";
let isAsking = false;

async function ask() {
  const response = await fetch("/keeper/numbers", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.status === 403) throw new Error("This visit is over: open the address that the shop printed when it started.");
  if (!response.ok) throw new Error(`The shop answered with an error (${response.status}).`);
  return response.json();
}

async function measure() {
  if (isAsking) return;
  isAsking = true;
  try {
    const numbers = await ask();
    answeredAt = performance.now();
    lastNumbers = `The last numbers are of ${new Date().toLocaleTimeString("en-GB")}`;
    take(numbers);
    say("");
  } catch (error) {
    const isSilent = error instanceof TypeError || error.name === "TimeoutError";
    const what = isSilent ? "The shop does not answer." : error.message;
    say(`${what} ${lastNumbers}; this page keeps asking.`);
    before = null;
    gap();
  }
  isAsking = false;
}

function take(numbers) {
  const { sale, totals, latency_ms } = numbers;
  if (sale) showSale(sale);
  for (const name of ["refused", "requests", "attempts", "conflicts", "sold_out", "faults"]) {
    page(name).textContent = whole(totals[name]);
  }
  page("reservations").textContent = whole(totals.sold);
  const perSecond = differences(numbers);
  rates.add(answeredAt, perSecond);
  latency.add(answeredAt, perSecond.attempts > 0 ? { p50: latency_ms.p50 ?? undefined, p99: latency_ms.p99 ?? undefined } : {});
  before = numbers;
}

/** What was counted per second since the numbers before; nothing if the shop began anew. */
function differences(numbers) {
  if (!before) return {};
  const seconds = (numbers.at_ms - before.at_ms) / 1000;
  const grown = Object.entries(numbers.totals).map(([name, total]) => [name, (total - before.totals[name]) / seconds]);
  const isSameCount = seconds > 0 && grown.every(([, rate]) => rate >= 0);
  return isSameCount ? Object.fromEntries(grown) : {};
}

function showSale(sale) {
  const until = {
    before: `opens in ${clock(sale.opens_in_ms)}`,
    open: `ends in ${clock(sale.closes_in_ms)}`,
    over: "",
  };
  document.title = `${sale.name} · shopkeeper`;
  page("name").textContent = sale.name;
  page("left").textContent = whole(sale.left);
  page("sold").textContent = whole(sale.stock - sale.left);
  page("state").hidden = false;
  page("state").className = `badge ${sale.left > 0 ? sale.state : ""}`;
  page("state").textContent = badge(sale.state, sale.left);
  page("clock").textContent = until[sale.state];
}

function gap() {
  const at = performance.now();
  rates.add(at, {});
  latency.add(at, {});
}

function say(text) {
  if (page("connection").textContent !== text) page("connection").textContent = text;
}

function draw() {
  rates.draw(performance.now());
  latency.draw(performance.now());
}

async function tick() {
  measure().then(draw);
  draw();
}

setInterval(tick, EVERY_MS);
window.addEventListener("resize", draw);
tick();
