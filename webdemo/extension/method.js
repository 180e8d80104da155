// What a level means: the session of a site, and the accuracy that a page reads.

import { epsilonFor, PrivateZone, reach, SparseVector, TraceSession } from "./geoind.js";
import { FACTOR } from "./store.js";

/**
 * Epsilon with which a report changes the odds between places within the radius by FACTOR at most.
 * @param {number} radius metres
 */
export const epsilonOf = (radius) => epsilonFor({ level: Math.log(FACTOR), radius });

/**
 * A session whose fresh reports have this epsilon; tests and choices are those of `SparseVector.forAccuracy`.
 * @param {number} radius metres
 * @param {import("./store.js").Zone | null} zone
 * @param {{key: string, person: string, budget?: import("./geoind.js").Budget}} options
 */
export function sessionOf(radius, zone, options) {
  const fresh = epsilonOf(radius);
  const method = new SparseVector({ fresh, test: fresh, limit: 3 * reach(fresh, 0.9), choice: fresh / 2 });
  return new TraceSession(method, { ...options, ...(zone && { zone: new PrivateZone(zone) }) });
}

/**
 * The metres within which 95 % of fresh reports lie.
 * @param {number} radius
 */
export const accuracyOf = (radius) => reach(epsilonOf(radius), 0.95);
