// The dial of a level: named stops, metres and odds in words.

import { metres } from "./geoind.js";
import { promise } from "./words.js";

const NAMES = ["street", "neighbourhood", "district", "town", "region"],
  STOPS = [50, 200, 500, 2000, 10000];
const STEP = 0.25;

/** Between two stops the radius grows by the same factor at every step. @param {number} position */
export function radiusAt(position) {
  const low = Math.min(Math.floor(position), STOPS.length - 2);
  return Number((STOPS[low] * (STOPS[low + 1] / STOPS[low]) ** (position - low)).toPrecision(2));
}

/** @param {number} radius */
function positionOf(radius) {
  const low = Math.max(
    0,
    STOPS.findLastIndex((stop, at) => stop <= radius && at < STOPS.length - 1),
  );
  return low + Math.log(radius / STOPS[low]) / Math.log(STOPS[low + 1] / STOPS[low]);
}

/**
 * @param {string} level
 * @param {number} radius
 * @param {(radius: number) => void} changed
 */
export function dialOf(level, radius, changed) {
  const card = document.createElement("div"),
    field = document.createElement("div"),
    label = document.createElement("label");
  const output = document.createElement("output"),
    input = document.createElement("input"),
    ends = document.createElement("div"),
    words = document.createElement("p");
  Object.assign(input, { type: "range", id: `dial-${level}`, min: 0, max: STOPS.length - 1, step: STEP });
  input.value = String(positionOf(radius));
  label.htmlFor = input.id;
  label.append(`Privacy ${level}: hide me within my`);
  ends.setAttribute("aria-hidden", "true");
  ends.append(...NAMES.map((name) => Object.assign(document.createElement("span"), { textContent: name })));
  [card.className, field.className, ends.className, words.className] = ["card", "field", "ends", "promise"];
  const show = (/** @type {number} */ metresNow) => {
    const name = NAMES[Math.round(positionOf(metresNow))];
    output.textContent = `${name}, ${metres(metresNow)}`;
    words.textContent = promise(metresNow);
    input.setAttribute("aria-valuetext", `${name}: ${metres(metresNow)}`);
  };
  input.addEventListener("input", () => show(radiusAt(Number(input.value))));
  input.addEventListener("change", () => changed(radiusAt(Number(input.value))));
  field.append(label, output, input, ends);
  card.append(field, words);
  show(radius);
  return card;
}
