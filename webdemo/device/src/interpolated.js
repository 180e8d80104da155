// A channel between the sites of a grid as a mechanism of every place, from a file that Python wrote.

import { blake2b } from "./blake2b.js";
import { asFinite, asLonLat, asPositive, toHex } from "./checks.js";
import { sqrt, twoTo, unit } from "./functions.js";
import { largestScale, toPlane } from "./plane.js";

/** @typedef {import("./randomness.js").Pairs} Pairs */
/** @typedef {(place: [number, number], purpose: () => string) => Pairs} Source of the words for a place and a purpose */
/** @typedef {{ xy: Float64Array, grid: number[] | null }} Sites */

const FORMAT = "geoind mechanism 1";
const MOST_ENTRIES = 1 << 23;
const SUM_TOLERANCE = 1e-9;
const LOCAL_RADIUS = 100000;
const LONGEST = 256;

/** A place becomes one of the four sites around it, drawn with bilinear weights, and the report is drawn from the site's row.
 *
 * The file is checked, and epsilon is measured: the privacy loss per metre between any two places of the domain. */
export class Interpolated {
  #grid;
  #matrix;
  #reports;
  #origin;
  #domain;
  #doubles;
  #digest = "";

  /** @param {string} text the content of a .json file of `save_mechanism` or `geoind optimal`
   * @throws {TypeError | RangeError} for everything else, and for a matrix that does not keep the promise of the file */
  constructor(text) {
    const about = asMembers(text);
    const inputs = asSites(about.inputs, "inputs");
    const outputs = about.outputs === null ? inputs : asSites(about.outputs, "outputs");
    const [count, width] = [inputs.xy.length / 2, outputs.xy.length / 2];
    if (!inputs.grid) throw new RangeError("inputs must be a grid");
    if (count * Math.max(count, width) > MOST_ENTRIES) throw new RangeError("the matrix has too many entries");
    this.#grid = inputs.grid;
    this.#matrix = asStochastic(asBytes(about.matrix, 8 * count * width), count, width);
    this.#doubles = [this.#matrix, inputs.xy, outputs.xy];
    this.#reports = asPlaces(about.reports, "reports");
    if (this.#reports.length !== width) throw new RangeError("reports must be one place for each output");
    const [origin] = asPlaces([about.projection], "projection");
    this.#origin = origin;
    this.#domain = about.domain === null ? null : asBox(about.domain);
    const promised = asPositive(about.epsilon, "epsilon");
    /** Privacy loss per metre on the ground, between any two places of the domain: measured. */
    this.epsilon = steepest(this.#matrix, this.#grid) * largestScale(this.#radius());
    if (!(this.epsilon <= promised))
      throw new RangeError(`the file promises epsilon ${promised}, but ${this.epsilon} was measured`);
  }

  /** The report of one valid location.
   * @param {number} lon
   * @param {number} lat
   * @param {Source} source
   * @returns {{ lat: number, lon: number }} */
  sample(lon, lat, source) {
    const [x, y] = this.#within(lon, lat);
    const [west, south, cell, columns, rows] = this.#grid;
    const [column, east] = between((x - west) / cell, columns - 1);
    const [row, north] = between((y - south) / cell, rows - 1);
    const weights = [(1 - east) * (1 - north), east * (1 - north), (1 - east) * north, east * north];
    const around = source([lon, lat], () => `Interpolated ${this.#purpose()}`);
    const corner = choose(weights, around);
    const [i, j] = [column + (corner & 1), row + (corner >> 1)];
    const width = this.#reports.length;
    const law = this.#matrix.subarray((j * columns + i) * width, (j * columns + i + 1) * width);
    const here = source([west + cell * i, south + cell * j], () => this.#purpose());
    const [longitude, latitude] = this.#reports[choose(law, here)];
    return { lat: latitude, lon: longitude };
  }

  /** The name of the keyed words of a row, as in Python; a digest of megabytes, so only where it is needed. */
  #purpose() {
    this.#digest ||= `Channel ${digestOf(this.#doubles)}`;
    return this.#digest;
  }

  /** A place of the domain in the plane.
   * @param {number} lon @param {number} lat */
  #within(lon, lat) {
    const outside = new RangeError("the location lies outside the domain of the mechanism");
    if (this.#domain) {
      const [west, south, east, north] = this.#domain;
      if (!(lon >= west && lon <= east && lat >= south && lat <= north)) throw outside;
      return toPlane(this.#origin, lon, lat);
    }
    const [x, y] = toPlane(this.#origin, lon, lat);
    if (!(sqrt(x * x + y * y) <= LOCAL_RADIUS)) throw outside;
    return [x, y];
  }

  /** The distance within which the domain lies of the origin. */
  #radius() {
    if (!this.#domain) return LOCAL_RADIUS;
    const [west, south, east, north] = this.#domain;
    const corners = [west, east].flatMap((lon) => [south, north].map((lat) => toPlane(this.#origin, lon, lat)));
    return Math.max(...corners.map(([x, y]) => sqrt(x * x + y * y)));
  }
}

/** The members of the file.
 * @param {unknown} text @returns {Record<string, unknown>} */
function asMembers(text) {
  if (typeof text !== "string") throw new TypeError("a mechanism must be the text of a file");
  let about = null;
  try {
    about = JSON.parse(text);
  } catch {
    // The error of the parser quotes the text.
  }
  if (about?.format !== FORMAT || about.interpolated !== true || about.metric !== "euclidean")
    throw new RangeError(`the text must be JSON of an interpolated ${FORMAT}`);
  return about;
}

/** @param {unknown} values @param {string} name @param {number} [count] @returns {number[]} */
function asNumbers(values, name, count) {
  if (!Array.isArray(values) || (count !== undefined && values.length !== count))
    throw new RangeError(`${name} must be a list${count === undefined ? "" : ` of ${count} numbers`}`);
  return values.map((value) => asFinite(value, name));
}

/** @param {unknown} values @param {string} name @returns {number[][]} */
function asPairs(values, name) {
  if (!Array.isArray(values)) throw new RangeError(`${name} must be a list of places`);
  return values.map((value) => asNumbers(value, name, 2));
}

/** Longitudes and latitudes.
 * @param {unknown} values @param {string} name */
const asPlaces = (values, name) => asPairs(values, name).map(([lon, lat]) => asLonLat(lat, lon));

/** A grid of x, y, cell, columns and rows, or a list of places.
 * @param {unknown} values @param {string} name @returns {Sites} */
function asSites(values, name) {
  if (Array.isArray(values) && Array.isArray(values[0]))
    return { xy: Float64Array.from(asPairs(values, name).flat()), grid: null };
  const grid = asNumbers(values, name, 5);
  const [x, y, cell, columns, rows] = grid;
  asPositive(cell, `the cell of ${name}`);
  const count = columns * rows;
  if (!(Number.isInteger(columns) && Number.isInteger(rows) && columns > 0 && rows > 0 && count <= MOST_ENTRIES))
    throw new RangeError(`${name} must have whole numbers of columns and rows`);
  const xy = new Float64Array(2 * count);
  for (let i = 0; i < count; i += 1) {
    xy[2 * i] = x + cell * (i % columns);
    xy[2 * i + 1] = y + cell * Math.floor(i / columns);
  }
  return { xy, grid: Math.min(columns, rows) > 1 ? grid : null };
}

/** West, south, east and north in degrees.
 * @param {unknown} values */
function asBox(values) {
  const box = asNumbers(values, "domain", 4);
  const [west, south, east, north] = box;
  asLonLat(south, west);
  asLonLat(north, east);
  if (!(west <= east && south <= north && east - west <= 90)) throw new RangeError("domain must be a box of degrees");
  return box;
}

/** @param {unknown} text in base 64 @param {number} size */
function asBytes(text, size) {
  let bytes = "";
  try {
    bytes = atob(String(text));
  } catch {
    // The length is wrong, too.
  }
  if (bytes.length !== size) throw new RangeError(`matrix must be ${size} bytes in base 64`);
  const view = new DataView(new ArrayBuffer(size));
  for (let i = 0; i < size; i += 1) view.setUint8(i, bytes.charCodeAt(i));
  return view;
}

/** @param {DataView} view @param {number} count @param {number} width @returns {Float64Array} */
function asStochastic(view, count, width) {
  const matrix = new Float64Array(count * width);
  for (let row = 0; row < count; row += 1) {
    for (let at = row * width; at < (row + 1) * width; at += 1) {
      matrix[at] = view.getFloat64(8 * at, true);
      if (!(matrix[at] >= 0)) throw new RangeError("matrix must hold probabilities");
    }
    if (!(Math.abs(rowSum(matrix, row * width, width) - 1) <= SUM_TOLERANCE))
      throw new RangeError(`row ${row} of matrix must sum to 1`);
  }
  return matrix;
}

/** @param {Float64Array} values @param {number} start @param {number} count */
function rowSum(values, start, count) {
  let sum = 0;
  for (let i = start; i < start + count; i += 1) sum += values[i];
  return sum;
}

/** The digest of matrix, inputs and outputs, as in Python.
 * @param {readonly Float64Array[]} doubles */
function digestOf(doubles) {
  const view = new DataView(new ArrayBuffer(8 * doubles.reduce((sum, values) => sum + values.length, 0)));
  let at = 0;
  for (const values of doubles)
    for (let i = 0; i < values.length; i += 1, at += 8) view.setFloat64(at, values[i] + 0, true);
  return toHex(blake2b(new Uint8Array(view.buffer), { size: 16 }));
}

/** The privacy loss per metre in the plane: the largest slope of the logarithm of a probability at a corner of a square.
 * @param {Float64Array} matrix @param {number[]} grid */
function steepest(matrix, [, , cell, columns, rows]) {
  const width = matrix.length / (columns * rows);
  // Probabilities are entries over the sum of their row.
  const sums = Float64Array.from({ length: columns * rows }, (_, site) => rowSum(matrix, site * width, width));
  let most = 0;
  for (let site = 0; site < columns * (rows - 1); site += 1) {
    if ((site + 1) % columns === 0) continue;
    for (let z = 0; z < width; z += 1) {
      const a = matrix[site * width + z] / sums[site];
      const b = matrix[(site + 1) * width + z] / sums[site + 1];
      const c = matrix[(site + columns) * width + z] / sums[site + columns];
      const d = matrix[(site + columns + 1) * width + z] / sums[site + columns + 1];
      // What is possible at no corner is 0 / 0, which is not greater than anything.
      for (let corner = 0; corner < 4; corner += 1) {
        const value = corner < 2 ? (corner < 1 ? a : b) : corner < 3 ? c : d;
        const across = (corner < 2 ? b - a : d - c) / value;
        const along = (corner % 2 < 1 ? c - a : d - b) / value;
        const slope = across * across + along * along;
        if (slope > most) most = slope;
      }
    }
  }
  return sqrt(most) / cell;
}

/** The number of a square along one axis, and the share of it that is passed; beyond the last one its end.
 * @param {number} steps @param {number} last @returns {[number, number]} */
function between(steps, last) {
  const clipped = Math.min(Math.max(steps, 0), last);
  const base = Math.min(Math.floor(clipped), last - 1);
  return [base, clipped - base];
}

/** The number of an entry of a row, each with the probability entry / sum of the row, exactly.
 * @param {ArrayLike<number>} row
 * @param {Pairs} pairs */
export function choose(row, pairs) {
  const first = pairs(0);
  const uniform = unit(first[1], first[0]);
  const room = twoTo(-52) * (row.length + 8);
  const sums = new Float64Array(row.length);
  let total = 0;
  for (let i = 0; i < row.length; i += 1) {
    total += row[i];
    sums[i] = total;
  }
  let found = 0;
  while (found < row.length - 1 && sums[found] / total <= uniform) found += 1;
  const below = found > 0 ? sums[found - 1] / total : -1;
  return uniform - below > room && sums[found] / total - uniform > room ? found : chooseExactly(row, first, pairs);
}

/** The same with whole numbers, and with more bits where 64 do not decide.
 * @param {ArrayLike<number>} row @param {Uint32Array} first @param {Pairs} pairs */
function chooseExactly(row, first, pairs) {
  let total = 0n;
  const borders = Array.from(row, (entry) => {
    total += wholeOf(entry);
    return total;
  });
  /** @param {bigint} value @param {boolean} included */
  const countOf = (value, included) => {
    const at = borders.findIndex((border) => (included ? border > value : border >= value));
    return at < 0 ? borders.length : at;
  };
  let [number, bits] = [wordOf(first, 0), 64n];
  for (let more = 1; more <= LONGEST; more += 1) {
    const lowest = countOf((number * total) >> bits, true);
    const highest = countOf(-((-(number + 1n) * total) >> bits), false);
    if (lowest === highest) return lowest;
    const pair = pairs(more);
    number = (number << 128n) | (wordOf(pair, 0) << 64n) | wordOf(pair, 2);
    bits += 128n;
  }
  throw new Error("the random source always returns the same bits");
}

/** @param {Uint32Array} pair @param {number} at */
const wordOf = (pair, at) => (BigInt(pair[at + 1]) << 32n) | BigInt(pair[at]);

/** A double that is not negative, as a multiple of 2^-1074.
 * @param {number} x */
function wholeOf(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 2047n;
  const digits = bits & 0xfffffffffffffn;
  return exponent ? (digits | 0x10000000000000n) << (exponent - 1n) : digits;
}
