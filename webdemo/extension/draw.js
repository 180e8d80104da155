// The true position, from the device to a report. It is not stored, logged or returned.

import { SparseVector } from "./geoind.js";

/** Milliseconds for the device to find its position, and how old a position may be. */
const PATIENCE = 30_000, AGE = 2_000;

/**
 * @typedef {object} Question
 * @property {string | null} session
 * @property {string} key
 * @property {import("./method.js").Method} method
 * @property {number} time
 * @typedef {object} Drawn
 * @property {number} [error] code of a GeolocationPositionError
 * @property {number} lat
 * @property {number} lon
 * @property {string} session
 * @property {number} cost epsilon per metre
 */

/** @returns {Promise<{lat: number, lon: number}>} */
function truth() {
  return new Promise((found, failed) => {
    const done = (/** @type {GeolocationPosition} */ { coords }) => found({ lat: coords.latitude, lon: coords.longitude });
    navigator.geolocation.getCurrentPosition(done, failed, { enableHighAccuracy: true, timeout: PATIENCE, maximumAge: AGE });
  });
}

/**
 * @param {Question} question
 * @returns {Promise<any>}
 */
export async function draw(question) {
  let here;
  try {
    here = await truth();
  } catch (error) {
    return { error: /** @type {GeolocationPositionError} */ (error).code === 3 ? 3 : 2 };
  }
  return step(here, question);
}

/**
 * One step of a session from a true position.
 * @param {{lat: number, lon: number}} here
 * @param {Question} question
 * @returns {Drawn}
 */
export function step(here, { session: state, key, method, time }) {
  const session = state === null ? new SparseVector({ ...method, key }) : SparseVector.resume(state, { ...method, key });
  const before = session.spent, report = session.report({ ...here, time });
  return { ...report, session: session.state(), cost: session.spent - before };
}
