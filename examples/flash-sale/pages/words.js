// Numbers and times as people read them.

const CURRENCY = document.documentElement.dataset.currency ?? "EUR";
const MONEY = new Intl.NumberFormat("en", { style: "currency", currency: CURRENCY });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const EXACT = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

export const money = (cents) => MONEY.format(cents / 100);

export const whole = (number) => WHOLE.format(number);

/** A rate or a latency: tenths matter only where the number is small. */
export const measured = (number) => (number >= 10 ? WHOLE : TENTHS).format(number);

/** A number at an axis. */
export const mark = (number) => EXACT.format(number);

/** Seconds, rounded up: what is promised is never too early. */
export const seconds = (ms) => `${whole(Math.max(1, Math.ceil(ms / 1000)))} s`;

/** A countdown: 0:09, 14:59, 1:00:00. It shows zero only when it is over. */
export function clock(ms) {
  const all = Math.max(0, Math.ceil(ms / 1000));
  const [hours, minutes, rest] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** What the sale is doing, as its badge says it. */
export function badge(state, left) {
  if (state === "open" && left === 0) return "Sold out";
  return { before: "Opens soon", open: "Open", over: "Over" }[state];
}
