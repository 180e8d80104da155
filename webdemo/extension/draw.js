// The true position, from the device to a report. It is not stored, logged or returned.

import { Budget, PrivateZone } from "./geoind.js";
import { epsilonOf, sessionOf } from "./method.js";
import { holding, ZONE } from "./store.js";

/** Milliseconds for the device to find its position. */
const PATIENCE = 30_000;

/**
 * @typedef {object} Question
 * @property {string | null} origin whose session takes a step; null for the centre of a zone
 * @property {number} radius metres within which the odds change by FACTOR at most
 * @property {number} time seconds since 1970
 * @property {string} key
 * @property {string | null} account
 * @property {{site: number, total: number}} budget
 * @property {import("./store.js").Zone | null} zone
 * @typedef {{lat: number, lon: number, radius?: number, account: string}} Drawn the report, and the account that has paid for it
 * @typedef {{error: number}} Failed a code of GeolocationPositionError
 */

/** @returns {Promise<import("./store.js").Place>} */
function truth() {
  return new Promise((found, failed) => {
    const done = (/** @type {GeolocationPosition} */ { coords }) =>
      found({ lat: coords.latitude, lon: coords.longitude });
    navigator.geolocation.getCurrentPosition(done, failed, {
      enableHighAccuracy: true,
      timeout: PATIENCE,
      maximumAge: 0,
    });
  });
}

/**
 * @param {Question} question
 * @returns {Promise<Drawn | Failed>}
 */
export async function draw(question) {
  try {
    return reportOf(await truth(), question);
  } catch (error) {
    return { error: error instanceof GeolocationPositionError && error.code === 3 ? 3 : 2 };
  }
}

/**
 * The report of a true position.
 * @param {import("./store.js").Place} here
 * @param {Question} question
 * @returns {Drawn}
 * @throws if the budget does not pay for it
 */
export function reportOf(here, { origin, radius, time, key, account, budget: { site, total }, zone }) {
  const storage = holding(account),
    budget = new Budget(storage, { epsilon: site, total });
  if (origin !== null) {
    const report = sessionOf(radius, zone, { key, person: origin, budget }).report({ ...here, time });
    return { ...report, account: String(storage.account) };
  }
  const made = PrivateZone.around({ ...here, person: ZONE, epsilon: epsilonOf(radius), key, budget });
  return { lat: made.lat, lon: made.lon, radius: made.radius, account: String(storage.account) };
}
