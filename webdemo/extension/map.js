// A map of what a site saw: the places, a circle and a scale. It has no tiles, so no server learns where you look.

import { many, metres } from "./geoind.js";

const WIDTH = 320,
  HEIGHT = 170,
  MARGIN = 22,
  NS = "http://www.w3.org/2000/svg";
const METRES_PER_DEGREE = 111195;

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function element(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A round number of metres, not above the given one: 1, 2 or 5 times a power of ten. @param {number} most */
function round(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return ([5, 2].find((times) => times * power <= most) ?? 1) * power;
}

/**
 * The map of the places that a site saw, in metres around the last one.
 * @param {import("./store.js").Seen[]} seen at least one
 * @returns {SVGElement}
 */
export function mapOf(seen) {
  const last = seen[seen.length - 1],
    shrink = Math.cos((last.lat * Math.PI) / 180);
  const east = (/** @type {number} */ lon) => ((lon - last.lon + 540) % 360) - 180;
  const points = seen.map(({ lat, lon }) => [
    east(lon) * METRES_PER_DEGREE * shrink,
    (last.lat - lat) * METRES_PER_DEGREE,
  ]);
  /** The least and the greatest coordinate of the places and the circle. @param {0 | 1} axis */
  const bounds = (axis) => {
    const all = [-last.accuracy, last.accuracy, ...points.map((point) => point[axis])];
    return [Math.min(...all), Math.max(...all)];
  };
  const [left, right] = bounds(0),
    [top, bottom] = bounds(1);
  const scale = Math.min((WIDTH - 2 * MARGIN) / (right - left), (HEIGHT - 2 * MARGIN) / (bottom - top));
  const at = (/** @type {number[]} */ [x, y]) => ({
    cx: WIDTH / 2 + scale * (x - (left + right) / 2),
    cy: HEIGHT / 2 + scale * (y - (top + bottom) / 2),
  });
  const label = `Map of ${many(seen.length, "place")} that this site saw. The circle around the last one has a radius of ${metres(last.accuracy)}.`;
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "map", "aria-label": label });
  svg.append(element("circle", { ...at([0, 0]), r: scale * last.accuracy, class: "reach" }));
  for (const point of points.slice(0, -1)) svg.append(element("circle", { ...at(point), r: 4, class: "seen" }));
  svg.append(element("circle", { ...at([0, 0]), r: 6, class: "last" }));
  const bar = round(80 / scale),
    end = 10 + bar * scale;
  svg.append(element("path", { d: `M10 ${HEIGHT - 15}v5H${end}v-5`, class: "scale" }));
  svg.append(element("text", { x: end + 5, y: HEIGHT - 8 }, metres(bar)));
  svg.append(element("text", { x: WIDTH - 20, y: 18 }, "N ↑"));
  return /** @type {SVGElement} */ (svg);
}
