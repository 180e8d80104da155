// Numbers for people.

import { factor } from "../../device/geoind.js";

export { factor, many, metres, percent } from "../../device/geoind.js";

export const times = (value) => `×${factor(value)}`;

export const small = (value) => value.toPrecision(3);
// A number and its unit stay on one line.
const unbroken = (text) => String(text).replace(/(?<=\d) (?=%|k?m\b)/g, "\u00a0");
export const put = (id, text) => {
  document.getElementById(id).textContent = unbroken(text);
};
// A slider's value, seen and heard.
export const valued = (id, text) => {
  put(`${id}-out`, text);
  document.getElementById(id).setAttribute("aria-valuetext", text);
};

// Odds of here against there.
export function odds(value) {
  const [most, where] = value >= 1 ? [value, "here"] : [1 / value, "there"];
  if (most < 1.05) return "even";
  return `${factor(most)} to 1 for ${where}`;
}

const WINDS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
export function direction(from, to) {
  const east = (to.lon - from.lng) * Math.cos((from.lat * Math.PI) / 180),
    angle = Math.atan2(east, to.lat - from.lat);
  return WINDS[(Math.round((angle / Math.PI) * 4) + 8) % 8];
}
