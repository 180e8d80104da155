// What a level means: the parameters of a session, and the accuracy that a page reads.

import { reach, ZONE_TEST } from "./geoind.js";
import { FACTOR } from "./store.js";

/** @typedef {{fresh: number, test: number, limit: number, choice: number}} Method */

/**
 * The session whose fresh reports change the odds between places within the radius by FACTOR at most. Tests and
 * choices are as in `SparseVector.for_accuracy` of the Python library.
 * @param {number} radius metres
 * @returns {Method}
 */
export function methodOf(radius) {
  const fresh = Math.log(FACTOR) / radius;
  return { fresh, test: fresh, limit: 3 * reach(fresh, 0.9), choice: fresh / 2 };
}

/**
 * The metres within which 95 % of fresh reports lie.
 * @param {number} radius
 */
export const accuracyOf = (radius) => reach(Math.log(FACTOR) / radius, 0.95);

/**
 * What the most expensive step of a session costs.
 * @param {Method} method
 * @param {import("./store.js").Zone | null} zone
 */
export const dearestStep = ({ fresh, test, choice }, zone) => fresh + test + choice + (zone ? ZONE_TEST / zone.radius : 0);
