// A session: one person's positions over time, each answered with a place that may be published.

import { ballsOf } from "./balls.js";
import { blake2b } from "./blake2b.js";
import { asFinite, asKey, asLonLat, asNumber, asPerson, asPositive, asUnit, toHex } from "./checks.js";
import { log, twoTo } from "./functions.js";
import { enoughNoise, globe } from "./obfuscate.js";
import { arcLength, FRESH, hasLeft, nearest, SEEN, SessionWords } from "./questions.js";
import { utf8 } from "./randomness.js";
import { planarRadius } from "./spherical.js";

/** @typedef {import("./questions.js").Place} Place */
/** @typedef {import("./questions.js").Run} Run */

const ANCHORS = 64;
const FAR = 1 / 3;

/** Staying is free: the last report is repeated until a private test finds that the person has moved. */
export class SparseVector {
  /** @param {object} options
   * @param {number} options.fresh epsilon of a fresh report, per metre
   * @param {number} options.test epsilon of all tests until the person has moved, per metre
   * @param {number} options.limit how far from the last report the person may go, in metres, before noise
   * @param {number} [options.choice] epsilon of the choice among places reported earlier; 0 for a fresh report each time
   * @param {number} [options.places] how many earlier places to choose among, at most 64
   */
  constructor({ fresh, test, limit, choice = 0, places = 8 }) {
    this.fresh = globe(asPositive(fresh, "fresh")).epsilon;
    this.test = asPositive(test, "test");
    this.limit = asPositive(limit, "limit");
    if (!(asNumber(choice, "choice") >= 0 && choice < Infinity))
      throw new RangeError(`choice must be 0 or positive and finite, got ${choice}`);
    this.choice = choice;
    if (!(Number.isInteger(asNumber(places, "places")) && places >= 1 && places <= ANCHORS))
      throw new RangeError(`places must be a whole number from 1 to ${ANCHORS}, got ${places}`);
    this.places = places;
    Object.freeze(this);
  }

  /** The method whose fresh reports are within so many metres with this probability.
   * @param {number} metres @param {number} [confidence] */
  static forAccuracy(metres, confidence = 0.9) {
    const radius = planarRadius(-log(1 - asUnit(confidence, "confidence")));
    const fresh = enoughNoise(radius / asPositive(metres, "metres"));
    return new SparseVector({ fresh, test: fresh, limit: 3 * metres, choice: fresh / 2 });
  }

  /** The charges of the most expensive step: a choice, a fresh report and the next run of tests. */
  get maxCharges() {
    return [...(this.choice ? [this.choice] : []), this.fresh, this.test];
  }
}

/** @typedef {[number, number, number, boolean]} Report time, longitude, latitude, and whether the place is new */

/** What a session has published and spent; no true position.
 * @typedef {object} History
 * @property {number} time
 * @property {Report[]} reports
 * @property {Place[]} anchors
 * @property {Run | null} run
 * @property {number} runs
 * @property {number} spent
 * @property {number} began
 * @property {number} counted
 * @property {number | null} used_until
 */

export class TraceSession {
  #key;
  #words;
  #person;
  #budget;
  #zone;
  /** @type {History | null} */
  #history = null;
  #seen = "";
  #tag;

  /** @param {SparseVector} method
   * @param {object} [options]
   * @param {Uint8Array | string} [options.key] 32 secret bytes; without it one is made
   * @param {string | number} [options.person] whose positions these are, and whose budget pays
   * @param {import("./budget.js").Budget} [options.budget] pays, and stores the newest state for each person and key
   * @param {import("./zone.js").PrivateZone} [options.zone] near the home, the answer is its centre
   */
  constructor(method, { key, person, budget, zone } = {}) {
    if (!(method instanceof SparseVector)) throw new TypeError("method must be a SparseVector");
    if (budget !== undefined && person === undefined) throw new TypeError("budget needs person: whose budget pays");
    this.method = method;
    this.#key = key === undefined ? crypto.getRandomValues(new Uint8Array(32)) : asKey(key).slice();
    this.#person = person === undefined ? "" : asPerson(person);
    this.#budget = budget;
    this.#zone = zone;
    this.#words = new SessionWords(this.#key, this.#person);
    this.#tag = toHex(blake2b(utf8(this.#person), { key: this.#key, size: 16, person: "geoind session" }));
  }

  /** Epsilon of everything that the session answered, per metre. */
  get spent() {
    const stored = this.#budget?.session(this.#person, this.#tag) ?? null;
    return (stored === null ? this.#history : parsed(stored).history)?.spent ?? 0;
  }

  /** The place to publish for a true position at a time, in seconds; later calls have later times.
   *
   * The last position at the same time again gets the same answer, free of charge.
   * @param {{ lat: number, lon: number, time: number }} position
   * @returns {{ lat: number, lon: number }}
   * @throws {TypeError | RangeError} before anything is drawn
   */
  report({ lat, lon, time }) {
    const place = asLonLat(lat, lon);
    const now = asFinite(time, "time") + 0;
    const seed = this.#words.step(now, place);
    const [a, b, c, d] = this.#words.pair(seed, 0, SEEN);
    const seen = [b, a, d, c].map((half) => half.toString(16).padStart(8, "0")).join("");
    let [history, before] = [this.#history, this.#seen];
    /** @param {string | null} stored @param {() => void} reserve */
    const step = (stored, reserve) => {
      if (stored !== null) ({ history, seen: before } = parsed(stored));
      if (history && now <= history.time) {
        if (now === history.time && seen === before) return null;
        throw new RangeError(
          `${now === history.time ? "another position at the same time" : "a time before the last one"}: the positions of a session come in order`,
        );
      }
      reserve();
      const [next, paid] = this.#step(history, place, now, seed);
      history = next;
      return { state: stateOf(next, seen), paid };
    };
    if (this.#budget) this.#budget.step(this.#person, this.#tag, this.maxCharges, step);
    else step(null, () => {});
    [this.#history, this.#seen] = [history, seen];
    return this.last;
  }

  /** The charges of the most expensive step: those of the method, and the next run of tests of a zone. */
  get maxCharges() {
    return [...this.method.maxCharges, ...(this.#zone ? [this.#zone.test] : [])];
  }

  /** The last answer. */
  get last() {
    const report = this.#history?.reports.at(-1);
    if (!report) throw new RangeError("the session has answered nothing yet");
    return { lat: report[2], lon: report[1] };
  }

  /** @param {History | null} last @param {Place} place @param {number} now @param {Uint32Array} seed
   * @returns {[History, number[]]} the next history and its charges */
  #step(last, place, now, seed) {
    const { test, limit } = this.method;
    const before = last ?? {
      time: now,
      reports: [],
      anchors: [],
      run: null,
      runs: 0,
      spent: 0,
      began: now,
      counted: 0,
      used_until: null,
    };
    const here = before.reports.at(-1);
    const zone = this.#zone;
    /** @type {Place | null} */
    const centre = zone ? [zone.lon, zone.lat] : null;
    const inside = Boolean(centre && before.run && isSame(before.run.place, centre));
    const enters = (/** @type {Place} */ place) => Boolean(zone && centre && arcLength(place, centre) <= zone.radius);
    const stays =
      here && before.run && !hasLeft(this.#words, seed, place, before.run, inside && zone ? zone.limit : limit);
    if (stays && (inside || !enters([here[1], here[2]])))
      return [{ ...before, time: now, reports: [[now, here[1], here[2], false]] }, []];
    /** @type {[Place, number[]]} */
    const [found, asked] = stays ? [[here[1], here[2]], []] : this.#moved(before, place, seed);
    const [report, epsilon] = zone && centre && enters(found) ? [centre, zone.test] : [found, test];
    const paid = [...asked, epsilon];
    const others = before.anchors.filter((anchor) => !isSame(anchor, report));
    const next = {
      ...before,
      time: now,
      reports: [/** @type {Report} */ ([now, ...report, others.length === before.anchors.length])],
      anchors: [...others, report].slice(-ANCHORS),
      run: { number: before.runs, epsilon, place: report },
      runs: before.runs + 1,
      spent: exactSum([before.spent, ...paid]),
    };
    return [next, paid];
  }

  /** A place reported earlier, or a fresh report, and its charges.
   * @param {History} before @param {Place} place @param {Uint32Array} seed
   * @returns {[Place, number[]]} */
  #moved({ reports, anchors }, place, seed) {
    const { fresh, limit, choice, places } = this.method;
    const here = reports.at(-1);
    const known =
      here && choice
        ? anchors
            .slice(-places - 1)
            .filter((anchor) => !isSame(anchor, [here[1], here[2]]))
            .slice(-places)
        : [];
    const asked = known.length ? [choice] : [];
    const number = known.length ? nearest(this.#words, seed, place, known, FAR * limit, choice) : null;
    if (number !== null) return [known[number], asked];
    const found = globe(fresh).sample(...place, (counter) => this.#words.pair(seed, fresh, FRESH, 0, counter));
    return [
      [found.lon, found.lat],
      [...asked, fresh],
    ];
  }

  /** What `resume` needs in addition to the method and the key, as JSON: what was published and spent, no true position. */
  state() {
    return stateOf(this.#history, this.#seen);
  }

  /** The session that a state describes; it continues as if it had never stopped.
   * @param {string} state of `state()`, or of Python's `TraceSession.state`
   * @param {SparseVector} method
   * @param {{ key: Uint8Array | string, person?: string | number, budget?: import("./budget.js").Budget,
   *   zone?: import("./zone.js").PrivateZone }} options
   */
  static resume(state, method, options) {
    if (options?.key === undefined) throw new TypeError("resume needs the session's key");
    const session = new TraceSession(method, options);
    ({ history: session.#history, seen: session.#seen } = parsed(state));
    return session;
  }
}

/** @param {Place} a @param {Place} b */
const isSame = (a, b) => a[0] === b[0] && a[1] === b[1];

/** The rounded sum of doubles.
 * @param {number[]} terms */
function exactSum(terms) {
  return Number(terms.reduce((sum, term) => sum + ballsOf(512).of(term).m, 0n)) * twoTo(-512);
}

/** @param {History | null} history @param {string} seen */
function stateOf(history, seen) {
  const run = history?.run;
  return JSON.stringify({
    history: history && { ...history, run: run ? [run.number, run.epsilon, run.place] : null },
    seen,
  });
}

/** @param {string} state @returns {{ history: History | null, seen: string }} */
function parsed(state) {
  try {
    const { history, seen } = JSON.parse(state);
    if (typeof seen !== "string") throw new TypeError();
    if (history === null) return { history, seen };
    const { time, reports, anchors, run, runs, spent, began, counted = 0, used_until = null } = history;
    for (const number of [time, runs, spent, began, counted, used_until ?? 0]) asFinite(number, "number");
    const place = (/** @type {unknown[]} */ [lon, lat]) => asLonLat(lat, lon);
    return {
      history: {
        time,
        reports: reports.map((/** @type {unknown[]} */ [when, lon, lat, fresh]) => [
          asFinite(when, "time"),
          ...place([lon, lat]),
          Boolean(fresh),
        ]),
        anchors: anchors.map(place),
        run: run && {
          number: asFinite(run[0], "number"),
          epsilon: asPositive(run[1], "epsilon"),
          place: place(run[2]),
        },
        runs,
        spent,
        began,
        counted,
        used_until,
      },
      seen,
    };
  } catch {
    throw new RangeError("state must be what TraceSession.state returned");
  }
}
