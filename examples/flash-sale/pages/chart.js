// A line chart of the last two minutes: axes, a legend that is also its switches, and the values under the pointer.
//
// A sample without a value is a gap in its line: what was not measured is not drawn.

import { mark, measured } from "./words.js";

export const SPAN_MS = 120_000;
const EVERY_MS = 30_000;
const MARGIN = { left: 46, right: 12, top: 8, bottom: 24 };
const ROWS = 4;

export class Chart {
  #svg;
  #curves;
  #samples = [];
  #pointer = null;
  #drawnAt = 0;

  /** `curves` are pairs of a name, which is the class of its line, and what the legend calls it. */
  constructor(svg, legend, curves) {
    this.#svg = svg;
    this.#curves = curves.map(([name, label]) => ({ name, isShown: true, ...entry(name, label) }));
    for (const curve of this.#curves) {
      legend.append(curve.item);
      curve.button.addEventListener("click", () => this.#toggle(curve));
    }
    svg.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    svg.addEventListener("pointerleave", () => this.#point(null));
  }

  /** Adds the values of this moment by name; a missing one is a gap. */
  add(at, values) {
    this.#samples.push({ at, values });
  }

  /** Draws what was measured until now. */
  draw(now) {
    this.#drawnAt = now;
    // One sample beyond the edge, so that the line begins at the edge.
    const first = this.#samples.findIndex(({ at }) => at >= now - SPAN_MS);
    this.#samples.splice(0, Math.max(0, first - 1));
    const { clientWidth: width, clientHeight: height } = this.#svg;
    if (width === 0) return;
    const highest = this.#highest();
    const step = easy(highest / ROWS);
    const top = step * Math.max(1, Math.ceil(highest / step));
    const place = {
      x: (at) => MARGIN.left + (1 - (now - at) / SPAN_MS) * (width - MARGIN.left - MARGIN.right),
      y: (value) => height - MARGIN.bottom - (value / top) * (height - MARGIN.top - MARGIN.bottom),
    };
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [...rows(place, { step, top }, width), ...columns(place, now, height)];
    for (const curve of this.#curves.filter(({ isShown }) => isShown)) {
      parts.push(shape("path", { class: `curve ${curve.name}`, d: this.#path(curve.name, place) }));
    }
    const read = this.#read(place);
    if (read && this.#pointer !== null) {
      const x = place.x(read.at);
      parts.push(shape("line", { class: "pointer", x1: x, x2: x, y1: MARGIN.top, y2: height - MARGIN.bottom }));
    }
    this.#svg.replaceChildren(...parts);
    for (const curve of this.#curves) {
      const value = read?.values[curve.name];
      curve.value.textContent = value === undefined ? "–" : measured(value);
    }
  }

  #path(name, place) {
    let isGap = true;
    let text = "";
    for (const { at, values } of this.#samples) {
      const value = values[name];
      if (value !== undefined) {
        const x = Math.max(MARGIN.left, place.x(at));
        const point = `${x.toFixed(1)} ${place.y(value).toFixed(1)}`;
        // A line of no length is a dot, so that a lonely sample is seen.
        text += isGap ? `M${point}h0` : `L${point}`;
      }
      isGap = value === undefined;
    }
    return text;
  }

  #highest() {
    const shown = this.#curves.filter(({ isShown }) => isShown).map(({ name }) => name);
    return Math.max(0, ...this.#samples.flatMap(({ values }) => shown.map((name) => values[name] ?? 0)));
  }

  /** The sample that the legend reads out: the one next to the pointer, or else the last. */
  #read(place) {
    if (this.#pointer === null) return this.#samples.at(-1);
    const distance = (sample) => Math.abs(place.x(sample.at) - this.#pointer);
    return this.#samples.reduce((best, sample) => (distance(sample) < distance(best) ? sample : best), this.#samples[0]);
  }

  #point(x) {
    this.#pointer = x;
    this.draw(this.#drawnAt);
  }

  #toggle(curve) {
    curve.isShown = !curve.isShown;
    curve.button.setAttribute("aria-pressed", curve.isShown);
    this.draw(this.#drawnAt);
  }
}

/** One switch of the legend, with a piece of its line. */
function entry(name, label) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  const value = document.createElement("b");
  const piece = shape("svg", { viewBox: "0 0 26 12", "aria-hidden": true });
  piece.append(shape("path", { class: `curve ${name}`, d: "M1 6H25" }));
  button.type = "button";
  button.setAttribute("aria-pressed", true);
  button.append(piece, label, value);
  item.append(button);
  return { item, button, value };
}

function rows(place, { step, top }, width) {
  const values = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return values.flatMap((value) => [
    shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: place.y(value), y2: place.y(value) }),
    text(mark(value), { x: MARGIN.left - 8, y: place.y(value) + 4, "text-anchor": "end" }),
  ]);
}

function columns(place, now, height) {
  const ages = Array.from({ length: SPAN_MS / EVERY_MS + 1 }, (_, index) => index * EVERY_MS);
  return ages.flatMap((age) => [
    shape("line", { class: "grid", x1: place.x(now - age), x2: place.x(now - age), y1: height - MARGIN.bottom, y2: height - MARGIN.bottom + 5 }),
    text(age === 0 ? "now" : `−${age / 1000} s`, {
      x: place.x(now - age),
      y: height - 4,
      "text-anchor": age === 0 ? "end" : age === SPAN_MS ? "start" : "middle",
    }),
  ]);
}

/** The next larger number that is easy to count in. */
function easy(least) {
  if (least <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= least) ?? 10 * power;
}

function text(words, attributes) {
  const element = shape("text", attributes);
  element.textContent = words;
  return element;
}

function shape(kind, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
