// One report of a true location.

import { asEpsilon, asKey, asLonLat } from "./checks.js";
import { Interpolated } from "./interpolated.js";
import { DECIMALS } from "./lattice.js";
import { keyedPairs, systemPairs } from "./randomness.js";
import { SphericalLaplace } from "./spherical.js";

const LEAST_MEAN_ERROR = 10;

/** @type {SphericalLaplace | null} */
let last = null;

/** The mechanism of a call; the last one is kept.
 * @param {number} epsilon
 * @param {number} [decimals] */
export function globe(epsilon, decimals = DECIMALS) {
  if (last?.epsilon !== epsilon || last.decimals !== decimals) last = new SphericalLaplace(epsilon, decimals);
  return last;
}

/** Epsilon; noise of less than 10 m on average is likely a unit error.
 * @param {number} epsilon */
export function enoughNoise(epsilon) {
  if (2 / epsilon < LEAST_MEAN_ERROR)
    throw new RangeError(
      `epsilon ${epsilon} per metre moves reports by less than ${LEAST_MEAN_ERROR} m on average: likely a unit error. Epsilon is level / radius with the radius in metres`,
    );
  return epsilon;
}

/** A geo-indistinguishable report of a true location: the exact rounding of a draw from the spherical Laplace law, or a
 * report of a mechanism from a file.
 *
 * @param {object} options
 * @param {number} options.lat the true latitude, in degrees
 * @param {number} options.lon the true longitude, in degrees
 * @param {number} [options.level] with `radius`: epsilon = level / radius
 * @param {number} [options.radius] in metres
 * @param {number} [options.epsilon] privacy loss per metre, instead of level and radius
 * @param {number} [options.decimals] of a degree, 0 to 5
 * @param {Interpolated} [options.mechanism] instead of epsilon and decimals
 * @param {Uint8Array | string} [options.key] 32 secret bytes, or 64 hexadecimal digits: the same record gets the same report
 * @param {import("./randomness.js").Label} [options.label] the record's identity, with a key
 * @returns {{ lat: number, lon: number }} on the public lattice
 * @throws {TypeError | RangeError} before anything is drawn
 */
export function obfuscate({ lat, lon, level, radius, epsilon, decimals, mechanism, key, label }) {
  if (mechanism !== undefined) {
    if (!(mechanism instanceof Interpolated)) throw new TypeError("mechanism must be an Interpolated");
    if ([level, radius, epsilon, decimals].some((option) => option !== undefined))
      throw new TypeError("give a mechanism, or epsilon, or level and radius, not several of them");
  }
  const chosen = mechanism ?? globe(enoughNoise(asEpsilon({ epsilon, level, radius })), decimals);
  const [longitude, latitude] = asLonLat(lat, lon);
  if (key === undefined && label !== undefined) throw new TypeError("label goes with a key");
  if (key !== undefined && label === undefined) throw new TypeError("key needs a label: the identity of the record");
  /** @type {import("./interpolated.js").Source} */
  const source = (place, purpose) =>
    key === undefined || label === undefined ? systemPairs : keyedPairs(asKey(key), label, place, purpose());
  if (chosen instanceof Interpolated) return chosen.sample(longitude, latitude, source);
  return chosen.sample(
    longitude,
    latitude,
    source([longitude, latitude], () => chosen.purpose),
  );
}

/** The metres within which a report lies of the truth with at least this probability.
 * @param {number} epsilon per metre
 * @param {number} confidence between 0 and 1
 * @param {number} [decimals]
 */
export function reach(epsilon, confidence, decimals) {
  return globe(epsilon, decimals).reach(confidence);
}

/** Epsilon per metre: level / radius.
 * @param {{ level: number, radius: number }} options */
export const epsilonFor = ({ level, radius }) => asEpsilon({ level, radius });
