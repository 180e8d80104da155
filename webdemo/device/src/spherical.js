// SphericalLaplace: the noise, drawn exactly. Doubles decide where their error cannot matter, ball arithmetic elsewhere.

import { ballsOf } from "./balls.js";
import { asPositive, asUnit } from "./checks.js";
import { atan2, cosSin, cosSinDegrees, cosSinTurn, DEGREE, log, polynomial, sqrt, twoTo, unit } from "./functions.js";
import { asDecimals, DECIMALS, longitudeDecimals, TENS, wrapped } from "./lattice.js";

/** @typedef {import("./balls.js").Ball} Ball */
/** @typedef {import("./balls.js").Balls} Balls */
/** @typedef {import("./randomness.js").Pairs} Pairs */

export const EARTH_RADIUS = 6371008.8;
export const WGS84_FACTOR = 1.0057; // no great circle is longer than this times the WGS84 distance
const GEODESIC_STRETCH = 1.0045; // and no WGS84 distance longer than this times the great circle
const LEAST_SCALES = 18.25;
const FLAT = 2000;
const EXTREME = 1e200;
const RADIUS_ERROR = twoTo(-36);
const SMALLEST_SURVIVAL = twoTo(-22);
const TEMPERATE = 80;

// r of r - ln(1 + r) = s^2 / 2 as s top(s) / bottom(s), relative error 3.5e-13 for s up to 5.8.
const TOP = [
  8.398215207014936e-5, 0.002883307962201279, 0.03341058137896401, 0.19802023679102762, 0.6655487230854896,
  1.2330765861740531, 0.9999999999996729,
];
const BOTTOM = [
  0.00016803347459220185, 0.005755847567750021, 0.06411222623348267, 0.33785652824460594, 0.8997432528077564, 1.0,
];

/** A number in hexadecimal, as C's %a and Python's float.hex print it.
 * @param {number} x positive and normal */
export function hexOf(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const power = (view.getUint16(0) >> 4) - 1023;
  const digits = (view.getBigUint64(0) & 0xfffffffffffffn).toString(16).padStart(13, "0");
  return `0x1.${digits}p${power < 0 ? "" : "+"}${power}`;
}

export class SphericalLaplace {
  /** @param {number} epsilon per WGS84 metre
   * @param {number} [decimals] of a degree */
  constructor(epsilon, decimals = DECIMALS) {
    asPositive(epsilon, "epsilon");
    const least = (LEAST_SCALES * WGS84_FACTOR) / EARTH_RADIUS;
    if (!(epsilon >= least && epsilon <= EXTREME))
      throw new RangeError(
        `epsilon must be between ${least.toPrecision(2)} and ${EXTREME} per metre on the globe, got ${epsilon}`,
      );
    this.epsilon = epsilon;
    this.decimals = asDecimals(decimals);
    this.scale = TENS[decimals];
    this.purpose = `SphericalLaplace ${hexOf(epsilon)}`;
    /** The Earth's radius in units of the noise's scale. */
    this.scales = (epsilon / WGS84_FACTOR) * EARTH_RADIUS;
    this.error = (((2 * RADIUS_ERROR) / this.scales + twoTo(-43)) / DEGREE) * this.scale;
    const [k, h] = [this.scales, 1 / (this.scales * this.scales)];
    this.tangent = [
      (2 / 15) * h * h,
      (-31 / 180) * h * h,
      h / 3 - (17 / 36) * h * h,
      -h / 6 + (5 / 24) * h * h,
      1 - h / 2 + (3 / 8) * h * h,
    ].map((coefficient) => coefficient / k);
  }

  /** Expected great-circle distance between truth and report, in metres. */
  get meanRadius() {
    return (2 * EARTH_RADIUS) / (this.scales + 1 / this.scales);
  }

  /** The great-circle metres within which a report lies of its truth with this probability.
   * @param {number} p */
  radiusQuantile(p) {
    const excess = -log(1 - asUnit(p, "p"));
    return this.#arc(planarRadius(excess), excess) * EARTH_RADIUS;
  }

  /** The WGS84 metres within which a report lies of its truth with at least this probability.
   * @param {number} confidence */
  reach(confidence) {
    asUnit(confidence, "confidence");
    const halfDiagonal = (Math.SQRT1_2 * EARTH_RADIUS * DEGREE) / this.scale;
    return GEODESIC_STRETCH * (this.radiusQuantile(confidence) + halfDiagonal);
  }

  /** The report of one valid location, from pairs of random words.
   * @param {number} lon
   * @param {number} lat
   * @param {Pairs} pairs
   * @returns {{ lat: number, lon: number }} */
  sample(lon, lat, pairs) {
    const words = pairs(0);
    return this.#inDoubles(lon, lat, words) ?? this.#exactly(lon, lat, words, pairs);
  }

  /** @param {number} lon @param {number} lat @param {Uint32Array} words */
  #inDoubles(lon, lat, words) {
    const survival = unit(words[1], words[0]);
    if (!(survival > SMALLEST_SURVIVAL && survival < 1 - SMALLEST_SURVIVAL)) return null;
    const [up, along] = this.#cosSinOfArc(sqrt(-2 * log(survival)));
    const [cos, sin] = cosSinTurn(words[3], words[2]);
    const [cosLat, sinLat] = cosSinDegrees(lat);
    const [north, east] = [along * cos, along * sin];
    const [outward, height] = [up * cosLat - north * sinLat, up * sinLat + north * cosLat];
    const rise = atan2(height, sqrt(outward * outward + east * east)) / DEGREE;
    const steps = rise * this.scale;
    const row = Math.round(steps);
    if (!(Math.abs(steps - row) < 0.5 - this.error)) return null;
    if (Math.abs(row) === 90 * this.scale) return this.#place(0, 0, row);
    const finest = longitudeDecimals(row, this.decimals);
    const degrees = lon + atan2(east, outward) / DEGREE;
    const columns = finest < 0 ? degrees / 10 : degrees * TENS[finest];
    const column = Math.round(columns);
    // Up to 80 degrees the error of a longitude is below 6 times that of the point; beyond, in steps of the row, below 20.
    const factor = Math.abs(rise) > TEMPERATE ? 20 : 6;
    return Math.abs(columns - column) < 0.5 - factor * this.error ? this.#place(column, finest, row) : null;
  }

  /** @param {number} column @param {number} finest @param {number} row */
  #place(column, finest, row) {
    return { lat: row / this.scale + 0, lon: wrapped(column, finest) };
  }

  /** Cosine and sine, up to a common factor, of the arc exceeded with probability exp(-s^2 / 2).
   * @param {number} s
   * @returns {[number, number]} */
  #cosSinOfArc(s) {
    const r = (s * polynomial(TOP, s)) / polynomial(BOTTOM, s);
    return this.scales >= FLAT ? [1, r * polynomial(this.tangent, r)] : cosSin(this.#arc(r, s * s * 0.5));
  }

  /** The arc that has the probability of the unit radius r in the plane: s - ln(cos a + k sin a) = excess with s = k a.
   * @param {number} r
   * @param {number} excess */
  #arc(r, excess) {
    const k = this.scales;
    let s = r - (r * (r + 3)) / (6 * k * k);
    for (let turn = 0; turn < 4; turn += 1) {
      const [cos, sin] = cosSin(s / k);
      const g = cos + k * sin;
      s -= ((s - log(g) - excess) * g) / (g - cos + sin / k + 1e-300);
    }
    return s / k;
  }

  /** @param {number} lon @param {number} lat @param {Uint32Array} words @param {Pairs} pairs */
  #exactly(lon, lat, words, pairs) {
    let [first, second] = [0n, 0n];
    for (let known = 1; known < 256; known += 1) {
      if (known > 1) words = pairs(known - 1);
      first = (first << 64n) | (BigInt(words[1]) << 32n) | BigInt(words[0]);
      second = (second << 64n) | (BigInt(words[3]) << 32n) | BigInt(words[2]);
      const balls = ballsOf(64 * known + 128 + Math.max(0, Math.ceil(Math.log2(this.scales))));
      const found = this.#exactPlace(
        balls,
        lon,
        lat,
        balls.uniform(first, 64 * known),
        balls.uniform(second, 64 * known),
      );
      if (found) return found;
    }
    throw new Error("the random source always returns the same bits");
  }

  /** @param {Balls} balls @param {number} lon @param {number} lat @param {Ball} survival @param {Ball} turn */
  #exactPlace(balls, lon, lat, survival, turn) {
    const { pi } = balls;
    const [cosArc, sinArc] = balls.cosSin(globeArc(balls, survival, this.scales));
    const [cos, sin] = balls.cosSin(balls.times(balls.mul(turn, pi), 2n));
    const [cosLat, sinLat] = balls.cosSin(balls.over(balls.mul(balls.of(lat), pi), 180n));
    const [north, east] = [balls.mul(sinArc, cos), balls.mul(sinArc, sin)];
    const outward = balls.sub(balls.mul(cosArc, cosLat), balls.mul(north, sinLat));
    const height = balls.add(balls.mul(cosArc, sinLat), balls.mul(north, cosLat));
    const across = balls.sqrt(balls.add(balls.mul(outward, outward), balls.mul(east, east)));
    const rise = balls.atan2(height, across);
    const row = rise && balls.nearest(balls.times(balls.div(rise, pi), 180n * BigInt(this.scale)));
    if (row === null) return null;
    if (row === 90n * BigInt(this.scale) || row === -90n * BigInt(this.scale)) return this.#place(0, 0, Number(row));
    const finest = longitudeDecimals(Number(row), this.decimals);
    const turned = balls.atan2(east, outward);
    if (!turned) return null;
    const along = balls.add(balls.of(lon), balls.times(balls.div(turned, pi), 180n));
    const column = balls.nearest(finest < 0 ? balls.over(along, 10n) : balls.times(along, BigInt(TENS[finest])));
    return column === null ? null : this.#place(Number(column), finest, Number(row));
  }
}

/** The radius r >= 0 of r - ln(1 + r) = excess, by Newton's method, for an excess of doubles.
 * @param {number} excess */
export function planarRadius(excess) {
  let r = excess + sqrt(2 * excess);
  for (let turn = 0; turn < 60; turn += 1) {
    const next = r - ((r - log(1 + r) - excess) * (1 + r)) / r;
    if (!(Math.abs(next - r) > 1e-15 * r)) return next;
    r = next;
  }
  return r;
}

/** The arc that is exceeded with this probability; k noise scales go into the radius.
 *
 * The probability falls from 1 to 0 as e^(-s) (cos(s/k) + k sin(s/k)) falls from 1 to -e^(-k pi); s is k arc. The search
 * need not be exact: both ends of the result are compared with the probability.
 * @param {Balls} balls
 * @param {Ball} survival
 * @param {number} scales
 * @returns {Ball} */
function globeArc(balls, survival, scales) {
  const { one, bits } = balls;
  const k = balls.of(scales);
  const end = balls.mul(k, balls.pi);
  const target = balls.sub(survival, balls.mul(balls.sub({ m: one, r: 0n }, survival), balls.expMinus(end.m)));
  /** @param {bigint} s @returns {[Ball, Ball]} the probability and, up to its sign, its slope */
  const falling = (s) => {
    const [cos, sin] = balls.cosSin(balls.div({ m: s, r: 0n }, k));
    const power = balls.expMinus(s);
    const kSin = balls.mul(k, sin);
    return [balls.mul(power, balls.add(cos, kSin)), balls.mul(power, balls.add(kSin, balls.div(sin, k)))];
  };
  // From the plane, in doubles; where they have too few bits, halving the interval begins.
  const share = Number((target.m << 60n) / one) * twoTo(-60);
  let s = balls.of(planarRadius(Math.max(1e-18, -log(Math.min(1, Math.max(twoTo(-60), share)))))).m;
  let [low, high, slope] = [0n, end.m, one];
  for (let turn = 0n; turn < 4n * bits; turn += 1n) {
    if (!(low < s && s < high)) s = (low + high) >> 1n;
    const [value, steep] = falling(s);
    const above = value.m - target.m;
    if (above > 0n) low = s;
    else high = s;
    slope = steep.m;
    if (slope <= 0n) {
      s = (low + high) >> 1n;
      continue;
    }
    const step = (above << bits) / slope;
    s += step;
    if (step < 1n << 20n && step > -(1n << 20n)) break;
  }
  let width = ((2n * target.r) << bits) / (slope > 0n ? slope : 1n) + (1n << 24n);
  for (; ; width *= 4n) {
    const [from, to] = [s - width, s + width];
    const fromHolds = from <= 0n || isAbove(falling(from)[0], target);
    const isOutside = to >= end.m - end.r;
    if (fromHolds && (isOutside || isAbove(target, falling(to)[0])))
      return balls.div(balls.between(from > 0n ? from : 0n, isOutside ? end.m + end.r : to), k);
  }
}

/** Whether every number of one ball is above every number of another.
 * @param {Ball} a
 * @param {Ball} b */
export const isAbove = (a, b) => a.m - a.r > b.m + b.r;
