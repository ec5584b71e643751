// What an answer of the shop means to a buyer: a sentence, its tone, and whether the wish is settled.
//
// A wish that may have been carried out keeps its key until it is settled, so that the next try is the same wish
// and never a second one.

import { money, seconds, whole } from "./words.js";

const left = (answer) => (answer.left > 0 ? `${whole(answer.left)} left.` : "");

const MEANINGS = {
  reserved: () => ({ tone: "good", text: "It is yours if you pay in time.", isFinal: true, hasOrder: true }),
  paid: (answer) => ({
    tone: "good",
    text: answer.again
      ? "It was paid already. Nothing was charged again. Thank you!"
      : `Paid: ${money(answer.charged_cents)}. Thank you!`,
  }),
  was_paid: () => ({ tone: "good", text: "It is paid. Thank you!" }),
  already_bought: (answer) => ({
    tone: "good",
    text: `You already have one: order ${answer.order}.`,
    isFinal: true,
    hasOrder: answer.pay !== undefined,
  }),
  conflict: (answer) => ({ tone: "warn", text: `Another buyer was faster. ${left(answer)} Please try again.` }),
  limited: (answer) =>
    answer.left === 0
      ? { ...MEANINGS.sold_out(), isFinal: false }
      : { tone: "warn", text: `Too many requests, try again in ${seconds(answer.retry_after_ms ?? 1000)}. ${left(answer)}` },
  paused: (answer) => ({
    tone: "warn",
    text: `You did not pay in time, so others come first. Try again in ${seconds(answer.retry_after_ms)}.`,
    isFinal: true,
  }),
  rested: () => ({ tone: "", text: "You can try again now." }),
  again: (answer) => ({
    tone: "warn",
    text: `No answer yet. Trying again in ${seconds(answer.retry_after_ms)}. Nothing is bought or charged twice.`,
  }),
  unavailable: () => ({
    tone: "bad",
    text: "The shop does not answer at the moment. Please try again: nothing is bought or charged twice.",
  }),
  sold_out: () => ({
    tone: "bad",
    text: "Sold out. What others do not pay for in time comes back here.",
    isFinal: true,
  }),
  not_open: () => ({ tone: "warn", text: "The sale has not opened yet. The button becomes active when it does." }),
  over: () => ({ tone: "bad", text: "The sale is over.", isFinal: true }),
  expired: () => ({ tone: "bad", text: "The time to pay is over. Your item went back on sale.", isFinal: true }),
  left_the_line: () => ({
    tone: "",
    text: "You left the line. If your turn had come already, you may have one: ask again to see.",
  }),
  unsure: () => ({
    tone: "warn",
    text: "Your last try got no answer here, and you may have one: ask again to see. Nothing is bought twice.",
  }),
};

/** The meaning of an answer; one that is not known speaks for itself, and the next try is a new wish. */
export function meaningOf(answer) {
  const meaning = MEANINGS[answer.result]?.(answer);
  const unknown = { tone: "bad", text: answer.message ?? "The shop did not understand. Please load the page again.", isFinal: true };
  return { isFinal: false, hasOrder: false, ...(meaning ?? unknown) };
}
