// Private questions about a true location. Doubles compare noisy distances; where they are not sure, more bits of the
// same noise and ball arithmetic decide.

import { cbcMac } from "./aes.js";
import { ballsOf } from "./balls.js";
import { blake2b } from "./blake2b.js";
import { atan2, cosSinDegrees, log, sqrt, twoTo, unit } from "./functions.js";
import { blocksOf, cipherOf, doubleBlock, utf8 } from "./randomness.js";
import { EARTH_RADIUS, WGS84_FACTOR } from "./spherical.js";

/** @typedef {[number, number]} Place longitude and latitude */
/** @typedef {import("./balls.js").Ball} Ball */
/** @typedef {import("./balls.js").Balls} Balls */

export const FRESH = 1;
const LIMIT = 3;
const TEST = 4;
const CHOICE = 5;
const NO_CHOICE = 6;
export const SEEN = 7;
const [SURE, CLOSE, TAIL] = [1e-9, 1e-7, twoTo(-30)];

/** The words of all sessions of one person under one key (docs/keyed-noise.md, sessions). */
export class SessionWords {
  #cipher;
  #person;

  /** @param {Uint8Array} key @param {string} name "" for a session without a person */
  constructor(key, name) {
    this.#cipher = cipherOf(key, "", "geoind steps");
    const [digest] = blocksOf(blake2b(utf8(name), { key, size: 16, person: "geoind traveller" }));
    this.#person = cbcMac(this.#cipher, digest);
  }

  /** The seed of a step: a moment and the true place.
   * @param {number} time @param {Place} place */
  step(time, place) {
    return this.#seed(doubleBlock(time, 0), place);
  }

  /** The seed of a run of tests against a reported place.
   * @param {number} number @param {Place} place */
  run(number, place) {
    return this.#seed(Uint32Array.of(number, 0, 1, 0), place);
  }

  /** @param {Uint32Array} block @param {Place} place */
  #seed(block, place) {
    return cbcMac(
      this.#cipher,
      block.map((word, i) => word ^ this.#person[i]),
      doubleBlock(...place),
    );
  }

  /** A pair of words of a seed.
   * @param {Uint32Array} seed @param {number} epsilon @param {number} purpose
   * @param {number} [number] @param {number} [counter] */
  pair(seed, epsilon, purpose, number = 0, counter = 0) {
    const [low, high] = doubleBlock(epsilon, 0);
    return this.#cipher(seed[0] ^ low, seed[1] ^ high, seed[2] ^ counter, seed[3] ^ ((purpose << 16) | number));
  }
}

/** How a run of tests splits its epsilon: for the limit's noise and for the tests', 1 : 2^(2/3).
 * @param {number} epsilon
 * @returns {[number, number]} */
export function shares(epsilon) {
  const forLimit = epsilon / (1 + 1.5874010519681994);
  return [forLimit, epsilon - forLimit];
}

/** Great-circle distance in metres.
 * @param {Place} here @param {Place} there */
export function arcLength(here, there) {
  const [[cosHere, sinHere], [cosThere, sinThere]] = [cosSinDegrees(here[1]), cosSinDegrees(there[1])];
  const [cosTurn, sinTurn] = cosSinDegrees(here[0] - there[0]);
  const [east, north] = [cosThere * sinTurn, cosHere * sinThere - sinHere * cosThere * cosTurn];
  return EARTH_RADIUS * atan2(sqrt(east * east + north * north), sinHere * sinThere + cosHere * cosThere * cosTurn);
}

/** Exponential noise, with or without a random sign, of which more bits are drawn when they are needed. */
class Noise {
  /** @param {(counter: number) => Uint32Array} pairs @param {number} scale @param {boolean} signed */
  constructor(pairs, scale, signed) {
    this.pairs = pairs;
    this.scale = scale;
    this.next = signed ? 1 : 0;
    this.sign = signed && pairs(0)[0] & 1 ? -1 : 1;
    this.bits = 0n;
    this.known = 0;
    this.refine();
  }

  /** Draw 64 more bits. */
  refine() {
    const words = this.pairs(this.next >> 1);
    const at = 2 * (this.next & 1);
    this.bits = (this.bits << 64n) | (BigInt(words[at + 1]) << 32n) | BigInt(words[at]);
    this.known += 1;
    this.next += 1;
  }

  /** In doubles; NaN where the first word has too few bits. */
  get value() {
    const words = this.pairs(0);
    const at = this.next - this.known ? 2 : 0;
    const uniform = unit(words[at + 1], words[at]);
    return uniform < TAIL ? NaN : -this.sign * this.scale * log(uniform);
  }

  /** A ball that holds the noise, whatever bits would follow, or null.
   * @param {Balls} balls
   * @returns {Ball | null} */
  ball(balls) {
    if (!this.bits) return null;
    const [low, high] = [balls.log(this.bits, 64 * this.known), balls.log(this.bits + 1n, 64 * this.known)];
    const product = balls.mul(balls.of(this.scale), balls.between(low.m - low.r, high.m + high.r));
    return balls.times(product, BigInt(-this.sign));
  }
}

/** A number or the distance between two places, in metres, with noise.
 * @typedef {{ number: number } | { places: [Place, Place] }} Term
 * @typedef {Term & { noise: Noise }} Sum */

/** @param {Balls} balls @param {Sum} sum @returns {Ball | null} */
function sumBall(balls, sum) {
  const noise = sum.noise.ball(balls);
  return noise && balls.add("number" in sum ? balls.of(sum.number) : arcBall(balls, ...sum.places), noise);
}

/** Whether the first sum is at least the second, as real numbers.
 * @param {Sum} first @param {Sum} second */
function exactlyAtLeast(first, second) {
  for (let bits = 192; ; bits += 64) {
    const balls = ballsOf(bits);
    const [a, b] = [sumBall(balls, first), sumBall(balls, second)];
    if (a && b && a.m - b.m > a.r + b.r) return true;
    if (a && b && b.m - a.m > a.r + b.r) return false;
    first.noise.refine();
    second.noise.refine();
  }
}

/** @param {Balls} balls @param {Place} here @param {Place} there @returns {Ball} */
function arcBall(balls, here, there) {
  const cosSin = (/** @type {Ball} */ degrees) => balls.cosSin(balls.over(balls.mul(degrees, balls.pi), 180n));
  const [cosHere, sinHere] = cosSin(balls.of(here[1]));
  const [cosThere, sinThere] = cosSin(balls.of(there[1]));
  const [cosTurn, sinTurn] = cosSin(balls.sub(balls.of(here[0]), balls.of(there[0])));
  const east = balls.mul(cosThere, sinTurn);
  const north = balls.sub(balls.mul(cosHere, sinThere), balls.mul(balls.mul(sinHere, cosThere), cosTurn));
  const across = balls.sqrt(balls.add(balls.mul(east, east), balls.mul(north, north)));
  const along = balls.add(balls.mul(sinHere, sinThere), balls.mul(balls.mul(cosHere, cosThere), cosTurn));
  const angle = balls.atan2(across, along);
  if (!angle) throw new Error("a unit vector has no length");
  return balls.mul(balls.of(EARTH_RADIUS), angle);
}

/** @typedef {{ number: number, epsilon: number, place: Place }} Run tests of whether a person has left a published place */

/** Whether a place lies about `limit` metres or more from that of a run (AboveThreshold; Lyu, Su and Li 2017).
 * @param {SessionWords} words @param {Uint32Array} seed of the step
 * @param {Place} place @param {Run} run @param {number} limit */
export function hasLeft(words, seed, place, run, limit) {
  const [forLimit, forTests] = shares(run.epsilon);
  const runSeed = words.run(run.number, run.place);
  const bar = new Noise(
    (counter) => words.pair(runSeed, run.epsilon, LIMIT, 0, counter),
    WGS84_FACTOR * (1 / forLimit),
    true,
  );
  const noise = new Noise(
    (counter) => words.pair(seed, run.epsilon, TEST, 0, counter),
    WGS84_FACTOR * (2 / forTests),
    true,
  );
  const [apart, moved, threshold] = [arcLength(place, run.place), noise.value, limit + bar.value];
  const difference = apart + moved - threshold;
  const size = apart + Math.abs(moved) + Math.abs(threshold) + 2 * limit + bar.scale + noise.scale;
  if (Math.abs(difference) > CLOSE + SURE * size) return difference > 0;
  return exactlyAtLeast({ places: [place, run.place], noise }, { number: limit, noise: bar });
}

/** The number of the place that is probably nearest, or null if none is within about `limit` (permute-and-flip).
 * @param {SessionWords} words @param {Uint32Array} seed of the step
 * @param {Place} here @param {readonly Place[]} places @param {number} limit @param {number} epsilon */
export function nearest(words, seed, here, places, limit, epsilon) {
  const scale = WGS84_FACTOR * (2 / epsilon);
  /** @param {Term} term @param {number} purpose @param {number} number @returns {Sum} */
  const sum = (term, purpose, number) => ({
    ...term,
    noise: new Noise((counter) => words.pair(seed, epsilon, purpose, number, counter), scale, false),
  });
  const terms = [
    ...places.map((place, i) => sum({ places: [here, place] }, CHOICE, i)),
    sum({ number: limit }, NO_CHOICE, 0),
  ];
  const values = terms.map((term) => ("number" in term ? term.number : arcLength(...term.places)) + term.noise.value);
  let best = values.indexOf(Math.min(...values));
  const isSure =
    best >= 0 &&
    values.every((value, i) => i === best || value > values[best] + CLOSE + SURE * (values[best] + value + 2 * scale));
  if (!isSure) {
    best = 0;
    for (let i = 1; i < terms.length; i += 1) if (!exactlyAtLeast(terms[i], terms[best])) best = i;
  }
  return best < places.length ? best : null;
}
