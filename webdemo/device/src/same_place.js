// The same report for the same place: a repeated question gets the same answer, which is paid once.

import { blake2b } from "./blake2b.js";
import { asEpsilon, asKey, asLonLat, asNumber, asPerson, toHex } from "./checks.js";
import { atan2, cosSin, cosSinDegrees, cosSinTurn, DEGREE, HALF_PI, sqrt, unit } from "./functions.js";
import { enoughNoise, globe } from "./obfuscate.js";
import { keyedPairs, keyedWords, utf8 } from "./randomness.js";
import { EARTH_RADIUS, hexOf } from "./spherical.js";

/** @typedef {[number, number, number]} Vector */

/** The same report for the same person, cell and epsilon, without stored records.
 *
 * It reveals, in addition to the report, which reports came from the same cell. The borders of the cells are secret: the
 * grid is turned at random, by the person's secret. */
export class SamePlace {
  #key;

  /** @param {Uint8Array | string} key 32 secret bytes
   * @param {{ cell?: number }} [options] side of a cell, 1 to 100 000 metres */
  constructor(key, { cell = 100 } = {}) {
    this.#key = asKey(key).slice();
    if (!(asNumber(cell, "cell") >= 1 && cell <= 100000))
      throw new RangeError(`cell must be between 1 and 100000 metres, got ${cell}`);
    this.cell = cell;
  }

  /** The person's report for the cell of a true location; only the first one is charged.
   * @param {object} options
   * @param {number} options.lat
   * @param {number} options.lon
   * @param {string | number} options.person
   * @param {number} [options.epsilon] or level and radius
   * @param {number} [options.level]
   * @param {number} [options.radius]
   * @param {import("./budget.js").Budget} [options.budget] charged once for each cell
   * @returns {{ lat: number, lon: number }}
   */
  obfuscate({ lat, lon, person, epsilon, level, radius, budget }) {
    const mechanism = globe(enoughNoise(asEpsilon({ epsilon, level, radius })));
    const place = asLonLat(lat, lon);
    const secret = blake2b(utf8(asPerson(person)), { key: this.#key, size: 32, person: "geoind person" });
    const [row, column, centre] = cellOf(secret, this.cell, place);
    const name = `${hexOf(mechanism.epsilon)} ${hexOf(this.cell)} (${row}, ${column})`;
    const token = toHex(blake2b(utf8(name), { key: secret, size: 16 }));
    budget?.charge(person, mechanism.epsilon, { once: token });
    return mechanism.sample(...centre, keyedPairs(secret, token, centre, mechanism.purpose));
  }
}

/** Row and column of a location's cell in the turned grid, and the cell's centre in degrees.
 * @param {Uint8Array} secret @param {number} cell @param {[number, number]} place
 * @returns {[number, number, [number, number]]} */
function cellOf(secret, cell, [lon, lat]) {
  const matrix = rotation(secret);
  const rows = Math.ceil((2 * HALF_PI * EARTH_RADIUS) / cell);
  const height = (2 * HALF_PI) / rows;
  const start = unitVector(cosSinDegrees(lon), cosSinDegrees(lat));
  const [x, y, z] = [0, 1, 2].map((j) => start[0] * matrix[0][j] + start[1] * matrix[1][j] + start[2] * matrix[2][j]);
  const row = Math.min(Math.floor((arcSine(z) + HALF_PI) / height), rows - 1);
  const middle = (row + 0.5) * height - HALF_PI;
  const columns = Math.max(1, Math.ceil((4 * HALF_PI * cosSin(Math.abs(middle))[0]) / height));
  const column = Math.min(Math.floor(((atan2(y, x) + 2 * HALF_PI) / (4 * HALF_PI)) * columns), columns - 1);
  const along = ((column + 0.5) * 4 * HALF_PI) / columns - 2 * HALF_PI;
  const end = unitVector(cosSinDegrees(along / DEGREE), cosSinDegrees(middle / DEGREE));
  const [u, v, w] = matrix.map((line) => line[0] * end[0] + line[1] * end[1] + line[2] * end[2]);
  return [row, column, [atan2(v, u) / DEGREE, arcSine(w) / DEGREE]];
}

/** @param {[number, number]} turn cosine and sine of the longitude @param {[number, number]} rise of the latitude
 * @returns {Vector} */
const unitVector = ([cosTurn, sinTurn], [cosRise, sinRise]) => [cosRise * cosTurn, cosRise * sinTurn, sinRise];

/** @param {number} z */
function arcSine(z) {
  const sine = Math.max(-1, Math.min(1, z));
  return atan2(sine, sqrt((1 - sine) * (1 + sine)));
}

/** A uniformly random rotation: a uniform unit quaternion (Shoemake, 1992), as a matrix.
 * @param {Uint8Array} secret @returns {[Vector, Vector, Vector]} */
function rotation(secret) {
  const words = keyedWords(secret, "grid", [0, 0], "SamePlace rotation");
  const [low, high, lowV, highV] = words(0, 0);
  const [lowW, highW] = words(1, 0);
  // The first 53 bits of each word.
  const u = unit(high, (low & ~2047) >>> 0);
  const [[cosV, sinV], [cosW, sinW]] = [
    cosSinTurn(highV, (lowV & ~2047) >>> 0),
    cosSinTurn(highW, (lowW & ~2047) >>> 0),
  ];
  const [a, b, c, d] = [sqrt(1 - u) * sinV, sqrt(1 - u) * cosV, sqrt(u) * sinW, sqrt(u) * cosW];
  return [
    [1 - 2 * (b * b + c * c), 2 * (a * b - c * d), 2 * (a * c + b * d)],
    [2 * (a * b + c * d), 1 - 2 * (a * a + c * c), 2 * (b * c - a * d)],
    [2 * (a * c - b * d), 2 * (b * c + a * d), 1 - 2 * (a * a + b * b)],
  ];
}
