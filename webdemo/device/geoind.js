// Made by webdemo/device/build.py from webdemo/device/src: change that.

/**
 * geoind on the device: geo-indistinguishable reports of locations, drawn exactly, in a page, an extension or in Node.
 *
 * One report, by the spherical Laplace law on the lattice of five decimals of a degree:
 *
 *     obfuscate({ lat: 48.8584, lon: 2.2945, level: Math.log(4), radius: 200 })   // { lat, lon }
 *     obfuscate({ lat, lon, epsilon: 0.0069, key, label: "trip-1" })              // the same record, the same report
 *     reach(epsilonFor({ level: Math.log(4), radius: 200 }), 0.95)                // metres: 692
 *
 * One report of a mechanism that Python saved as a .json file:
 *
 *     obfuscate({ lat, lon, mechanism: new Interpolated(text) })
 *
 * A person who moves; staying is free, and every answer is stored with its charge:
 *
 *     const budget = new Budget(localStorage, { epsilon: 0.1, total: 0.5 });
 *     const session = new TraceSession(SparseVector.forAccuracy(500), { key, person: "maps.example", budget });
 *     session.report({ lat, lon, time: Date.now() / 1000 });                      // { lat, lon }, or BudgetExceededError
 *     TraceSession.resume(session.state(), session.method, { key });              // a state of Python's, too
 *
 * One report per cell of a secret grid, charged once:
 *
 *     new SamePlace(key, { cell: 100 }).obfuscate({ lat, lon, person: "ana", level: Math.log(4), radius: 200, budget });
 *
 * Bad input is a TypeError or a RangeError before anything is drawn or charged. A key is 32 secret bytes (Uint8Array), or
 * 64 hexadecimal digits. docs/device.md says what is exact and why.
 */

// What callers give, checked before anything is drawn. Messages never contain a coordinate.

/** @param {unknown} value @param {string} name @returns {number} */
function asNumber(value, name) {
  if (typeof value !== "number")
    throw new TypeError(`${name} must be a number, got ${value === null ? "null" : typeof value}`);
  return value;
}

/** @param {unknown} value @param {string} name @returns {number} */
function asFinite(value, name) {
  const number = asNumber(value, name);
  if (!Number.isFinite(number)) throw new RangeError(`${name} must be finite`);
  return number;
}

/** @param {unknown} value @param {string} name @returns {number} */
function asPositive(value, name) {
  const number = asNumber(value, name);
  if (!(number > 0 && number < Infinity)) throw new RangeError(`${name} must be positive and finite, got ${number}`);
  return number;
}

/** @param {unknown} value @param {string} name @returns {number} */
function asUnit(value, name) {
  const number = asNumber(value, name);
  if (!(number > 0 && number < 1)) throw new RangeError(`${name} must lie strictly between 0 and 1, got ${number}`);
  return number;
}

/** @param {unknown} lat @param {unknown} lon @returns {[number, number]} longitude and latitude, never -0 */
function asLonLat(lat, lon) {
  const [latitude, longitude] = [asFinite(lat, "lat"), asFinite(lon, "lon")];
  if (!(Math.abs(longitude) <= 180)) throw new RangeError("longitude must be between -180 and 180 degrees");
  if (!(Math.abs(latitude) <= 90)) throw new RangeError("latitude must be between -90 and 90 degrees");
  return [longitude + 0, latitude + 0];
}

/** 32 secret bytes, given as bytes or as 64 hexadecimal digits.
 * @param {unknown} key @returns {Uint8Array} */
function asKey(key) {
  if (key instanceof Uint8Array) {
    if (key.length !== 32) throw new RangeError(`key must have 32 bytes, got ${key.length}`);
    return key;
  }
  if (typeof key !== "string") throw new TypeError("key must be 32 bytes in a Uint8Array, or 64 hexadecimal digits");
  if (!/^[0-9a-fA-F]{64}$/.test(key)) throw new RangeError("key must have 64 hexadecimal digits");
  return Uint8Array.from({ length: 32 }, (_, i) => parseInt(key.slice(2 * i, 2 * i + 2), 16));
}

/** A name as ledgers store it: text in Unicode NFC, or the digits of a whole number.
 * @param {unknown} person @returns {string} */
function asPerson(person) {
  if (typeof person === "bigint" || Number.isSafeInteger(person)) return String(person);
  if (typeof person !== "string") throw new TypeError("person must be text or a whole number");
  if (!person || person !== person.trim() || /\p{C}|(?! )\p{Z}/u.test(person))
    throw new RangeError("person must be a name of printable characters without space around it");
  return person.normalize("NFC");
}

/** Epsilon per metre of an option `epsilon`, or of `level` and `radius`.
 * @param {{ epsilon?: number, level?: number, radius?: number }} options @returns {number} */
function asEpsilon({ epsilon, level, radius }) {
  if (epsilon === undefined) {
    if (level === undefined || radius === undefined) throw new TypeError("give epsilon, or both level and radius");
    return asPositive(asPositive(level, "level") / asPositive(radius, "radius"), "level / radius");
  }
  if (level !== undefined || radius !== undefined) throw new TypeError("give epsilon, or level and radius, not both");
  return asPositive(epsilon, "epsilon");
}

/** @param {Uint8Array} bytes */
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

// The privacy budget of each person or site, kept in a storage with getItem and setItem, such as localStorage.


const UNITS = 1e15; // charges are whole units of 1e-15 per metre, so that they add up exactly
const LARGEST = 9; // per metre: more units would not be exact
const SLACK = 1 + 1e-9; // so that a budget of 10 * epsilon pays for ten reports

/** @typedef {{ getItem(name: string): string | null, setItem(name: string, value: string): void }} Storage */
/** @typedef {{ spent: Record<string, number>, paid: Record<string, string[]>, sessions: Record<string, string> }} Account */

/** A budget does not pay for a report: nothing was charged and nothing was drawn. */
class BudgetExceededError extends Error {
  /** @param {string} person @param {number} requested @param {number} remaining */
  constructor(person, requested, remaining) {
    super(`the budget has ${remaining} per metre left, and ${requested} are needed`);
    this.name = "BudgetExceededError";
    this.person = person;
    this.requested = requested;
    this.remaining = remaining;
  }
}

/** @param {number} epsilon @param {string} name */
function asUnits(epsilon, name) {
  if (asPositive(epsilon, name) > LARGEST)
    throw new RangeError(`${name} must be at most ${LARGEST} per metre, got ${epsilon}`);
  return Math.ceil(epsilon * UNITS);
}

/** @param {readonly number[]} costs */
const unitsOf = (costs) => costs.reduce((sum, cost) => sum + asUnits(cost, "epsilon"), 0);

/** What persons, or sites, may spend, and what they have spent. */
class Budget {
  #storage;
  #name;
  #each;
  #total;

  /** A budget for each person (or site), and optionally one for all of them together.
   *
   * Everything is one item of the storage, and written at once: a charge and the state of the session that it pays for are
   * stored together or not at all. Two tabs that write at the same time need a lock, such as `navigator.locks`.
   *
   * @param {Storage} storage
   * @param {object} options
   * @param {number} options.epsilon per metre, what each person may spend
   * @param {number} [options.total] per metre, what all persons may spend together
   * @param {string} [options.name] of the storage's item
   */
  constructor(storage, { epsilon, total, name = "geoind budget" }) {
    if (typeof storage?.getItem !== "function" || typeof storage?.setItem !== "function")
      throw new TypeError("storage must have getItem and setItem, as localStorage has");
    this.#storage = storage;
    this.#name = String(name);
    this.#each = asUnits(epsilon, "epsilon");
    this.#total = total === undefined ? Infinity : asUnits(total, "total");
    this.#read();
  }

  /** What a person has spent, per metre.
   * @param {string | number} person */
  spent(person) {
    return this.#spent(this.#read(), asPerson(person)) / UNITS;
  }

  /** What all persons have spent, per metre. */
  get totalSpent() {
    return sumOf(this.#read()) / UNITS;
  }

  /** What a person may still spend, per metre.
   * @param {string | number} person */
  remaining(person) {
    return Math.max(0, this.#remaining(this.#read(), asPerson(person))) / UNITS;
  }

  /** Charge a person, or throw a BudgetExceededError; the same `once` is charged once.
   * @param {string | number} person
   * @param {number} epsilon per metre
   * @param {{ once?: string }} [options]
   */
  charge(person, epsilon, { once } = {}) {
    const [name, account] = [asPerson(person), this.#read()];
    if (once !== undefined) {
      if (typeof once !== "string") throw new TypeError("once must be text");
      const paid = account.paid[name] ?? [];
      if (paid.includes(once)) return;
      account.paid[name] = [...paid, once];
    }
    this.#pay(account, name, [epsilon]);
    this.#write(account);
  }

  /** Run a step of a session: from its stored state to its charges and its next state, which are stored together.
   *
   * @param {string | number} person
   * @param {string} tag names the session's key
   * @param {readonly number[]} most the charges of the most expensive step
   * @param {(state: string | null, reserve: () => void) => { state: string, paid: readonly number[] } | null} step calls
   * `reserve` before it draws, which throws unless `most` can be paid; returns null if nothing changes
   */
  step(person, tag, most, step) {
    const [name, account] = [asPerson(person), this.#read()];
    const place = `${tag} ${name}`;
    const stored = Object.hasOwn(account.sessions, place) ? account.sessions[place] : null;
    const taken = step(stored, () => this.#reserve(account, name, most));
    if (!taken) return;
    this.#pay(account, name, taken.paid);
    account.sessions[place] = taken.state;
    this.#write(account);
  }

  /** The stored state of a person's session, or null.
   * @param {string | number} person
   * @param {string} tag */
  session(person, tag) {
    const { sessions } = this.#read();
    const place = `${tag} ${asPerson(person)}`;
    return Object.hasOwn(sessions, place) ? sessions[place] : null;
  }

  /** Delete what is stored about a person: what was spent, too.
   * @param {string | number} person */
  forget(person) {
    const [name, account] = [asPerson(person), this.#read()];
    delete account.spent[name];
    delete account.paid[name];
    for (const place of Object.keys(account.sessions)) if (place.slice(33) === name) delete account.sessions[place];
    this.#write(account);
  }

  /** @param {Account} account @param {string} name */
  #spent(account, name) {
    return Object.hasOwn(account.spent, name) ? account.spent[name] : 0;
  }

  /** @param {Account} account @param {string} name */
  #remaining(account, name) {
    return Math.min(this.#each - this.#spent(account, name), this.#total - sumOf(account));
  }

  /** @param {Account} account @param {string} name @param {readonly number[]} costs */
  #reserve(account, name, costs) {
    const needed = unitsOf(costs);
    const isEnough =
      this.#spent(account, name) + needed <= this.#each * SLACK && sumOf(account) + needed <= this.#total * SLACK;
    if (isEnough) return;
    throw new BudgetExceededError(name, needed / UNITS, Math.max(0, this.#remaining(account, name)) / UNITS);
  }

  /** @param {Account} account @param {string} name @param {readonly number[]} costs */
  #pay(account, name, costs) {
    this.#reserve(account, name, costs);
    account.spent[name] = this.#spent(account, name) + unitsOf(costs);
  }

  /** @returns {Account} */
  #read() {
    const stored = this.#storage.getItem(this.#name);
    // Objects without a prototype: a person may be called "constructor".
    const empty = { spent: Object.create(null), paid: Object.create(null), sessions: Object.create(null) };
    if (stored === null || stored === undefined) return empty;
    try {
      const { spent, paid, sessions } = JSON.parse(stored);
      if (!Object.values(spent).every((units) => Number.isSafeInteger(units) && units >= 0)) throw new RangeError();
      if (
        !Object.values(paid).every((tokens) =>
          tokens.every((/** @type {unknown} */ token) => typeof token === "string"),
        )
      )
        throw new RangeError();
      if (!Object.values(sessions).every((state) => typeof state === "string")) throw new RangeError();
      return {
        spent: Object.assign(empty.spent, spent),
        paid: Object.assign(empty.paid, paid),
        sessions: Object.assign(empty.sessions, sessions),
      };
    } catch {
      throw new RangeError(`the item ${JSON.stringify(this.#name)} of the storage is not a budget`);
    }
  }

  /** @param {Account} account */
  #write(account) {
    this.#storage.setItem(this.#name, JSON.stringify(account));
  }
}

/** @param {Account} account */
const sumOf = (account) => Object.values(account.spent).reduce((sum, units) => sum + units, 0);

// BLAKE2b (RFC 7693) with a key and a personalisation. A number of 64 bits is two unsigned halves, the low one first.

// biome-ignore format: a table
const IV = Uint32Array.of(
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
);
// biome-ignore format: a table
const ORDERS = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
  "0123456789abcdef", "ea489fd61c02b753",
].map((order) => Array.from(order, (digit) => 2 * parseInt(digit, 16)));
// biome-ignore format: a table
const MIXES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
].map((mix) => mix.map((index) => 2 * index));
const BLOCK = 128;

const v = new Uint32Array(32);
const m = new Uint32Array(32);

/** v[a] += the number low, high.
 * @param {number} a @param {number} low @param {number} high */
function add(a, low, high) {
  const sum = v[a] + low;
  v[a + 1] += high + (sum > 0xffffffff ? 1 : 0);
  v[a] = sum;
}

/** v[a] = (v[a] ^ v[b]) with its halves exchanged, and then rotated right by less than 32 bits.
 * @param {number} a @param {number} b @param {number} bits */
function xorExchanged(a, b, bits) {
  const low = v[a + 1] ^ v[b + 1];
  const high = v[a] ^ v[b];
  v[a] = bits ? (low >>> bits) | (high << (32 - bits)) : low;
  v[a + 1] = bits ? (high >>> bits) | (low << (32 - bits)) : high;
}

/** v[a] = (v[a] ^ v[b]) rotated right by less than 32 bits.
 * @param {number} a @param {number} b @param {number} bits */
function xorRotated(a, b, bits) {
  const low = v[a] ^ v[b];
  const high = v[a + 1] ^ v[b + 1];
  v[a] = (low >>> bits) | (high << (32 - bits));
  v[a + 1] = (high >>> bits) | (low << (32 - bits));
}

/** @param {Uint32Array} h @param {number} length @param {boolean} isLast */
function compress(h, length, isLast) {
  v.set(h);
  v.set(IV, 16);
  v[24] ^= length;
  if (isLast) {
    v[28] = ~v[28];
    v[29] = ~v[29];
  }
  for (let round = 0; round < ORDERS.length; round += 1) {
    const order = ORDERS[round];
    for (let i = 0; i < 8; i += 1) {
      const mix = MIXES[i];
      const a = mix[0];
      const b = mix[1];
      const c = mix[2];
      const d = mix[3];
      const x = order[2 * i];
      const y = order[2 * i + 1];
      add(a, v[b], v[b + 1]);
      add(a, m[x], m[x + 1]);
      xorExchanged(d, a, 0);
      add(c, v[d], v[d + 1]);
      xorRotated(b, c, 24);
      add(a, v[b], v[b + 1]);
      add(a, m[y], m[y + 1]);
      xorRotated(d, a, 16);
      add(c, v[d], v[d + 1]);
      xorExchanged(b, c, 31);
    }
  }
  for (let i = 0; i < 16; i += 1) h[i] ^= v[i] ^ v[i + 16];
}

/** BLAKE2b of a message of less than 2^32 bytes.
 * @param {Uint8Array} message
 * @param {{ key?: Uint8Array, size: number, person?: string }} options `person` is at most 16 characters of ASCII
 * @returns {Uint8Array} */
function blake2b(message, { key = new Uint8Array(0), size, person = "" }) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(new TextEncoder().encode(person), 48);
  const h = IV.map((word, i) => word ^ new DataView(parameters.buffer).getUint32(4 * i, true));
  const before = key.length ? BLOCK : 0;
  const data = new Uint8Array(Math.max(before + BLOCK * Math.ceil(message.length / BLOCK), BLOCK));
  data.set(key);
  data.set(message, before);
  const view = new DataView(data.buffer);
  for (let start = 0; start < data.length; start += BLOCK) {
    for (let i = 0; i < 32; i += 1) m[i] = view.getUint32(start + 4 * i, true);
    const isLast = start + BLOCK === data.length;
    compress(h, isLast ? before + message.length : start + BLOCK, isLast);
  }
  v.fill(0);
  m.fill(0);
  const bytes = new DataView(new ArrayBuffer(64));
  for (const [i, word] of h.entries()) bytes.setUint32(4 * i, word, true);
  return new Uint8Array(bytes.buffer).slice(0, size);
}

// Elementary functions in doubles, made of sums, products and quotients: the standard of JavaScript promises no accuracy
// of Math.sin and the like. Each is within 16 u of its value, u = 2^-53; docs/device.md has the bounds.

const HALF_PI = 1.5707963267948966;
const HALF_PI_LOW = 6.123233995736766e-17;
const LN2_HIGH = 0.6931471803691238; // the last 21 bits are zero: a small multiple is exact
const LN2_LOW = 1.9082149292705877e-10;
const DEGREE = 0.017453292519943295;

/** A power of two, exactly: the standard lets the operator ** round differently.
 * @param {number} n */
function twoTo(n) {
  let power = 1;
  for (let i = 0; i < Math.abs(n); i += 1) power *= n < 0 ? 0.5 : 2;
  return power;
}

/** A number between 0 and 1 from its first 64 bits, as two unsigned halves.
 * @param {number} high
 * @param {number} low */
const unit = (high, low) => high * HIGH + low * LOW;
const HIGH = twoTo(-32);
const LOW = twoTo(-64);

/** The value of a polynomial, the coefficient of the highest power first.
 * @param {readonly number[]} coefficients
 * @param {number} x */
function polynomial(coefficients, x) {
  let total = 0;
  for (const coefficient of coefficients) total = total * x + coefficient;
  return total;
}

/** A root of correct size is all that is assumed of Math.sqrt: a step of Newton's method follows.
 * @param {number} x */
function sqrt(x) {
  const root = Math.sqrt(x);
  return root > 0 ? 0.5 * (root + x / root) : 0;
}

/** @param {number} count @param {(n: number) => number} term */
const series = (count, term) => Array.from({ length: count }, (_, i) => term(count - 1 - i));

const LOG = series(12, (n) => 2 / (2 * n + 3));

/** The natural logarithm, for 2^-64 <= x <= 2^64.
 * @param {number} x */
function log(x) {
  let power = 0;
  for (; x < Math.SQRT1_2; power -= 1) x *= 2;
  for (; x > Math.SQRT2; power += 1) x *= 0.5;
  const f = (x - 1) / (x + 1);
  const z = f * f;
  return power * LN2_HIGH + (2 * f + (f * z * polynomial(LOG, z) + power * LN2_LOW));
}

/** @param {number} n @returns {number} */
const factorial = (n) => (n < 2 ? 1 : n * factorial(n - 1));
const SIN = series(8, (n) => (n % 2 ? 1 : -1) / factorial(2 * n + 3));
const COS = series(8, (n) => (n % 2 ? -1 : 1) / factorial(2 * n + 4));

/** Cosine and sine of an angle of at most pi / 4.
 * @param {number} x
 * @returns {[number, number]} */
function smallCosSin(x) {
  const z = x * x;
  return [1 - (0.5 * z - z * z * polynomial(COS, z)), x + x * z * polynomial(SIN, z)];
}

/** Turn cosine and sine by whole quarters.
 * @param {[number, number]} cosSin
 * @param {number} quarters
 * @returns {[number, number]} */
function turned([cos, sin], quarters) {
  const [c, s] = quarters & 1 ? [-sin, cos] : [cos, sin];
  return quarters & 2 ? [-c, -s] : [c, s];
}

/** Cosine and sine of an angle between 0 and 2.
 * @param {number} x
 * @returns {[number, number]} */
function cosSin(x) {
  return x < 0.7854 ? smallCosSin(x) : turned(smallCosSin(x - HALF_PI - HALF_PI_LOW), 1);
}

/** Cosine and sine of degrees, at most 360.
 * @param {number} degrees
 * @returns {[number, number]} */
function cosSinDegrees(degrees) {
  const quarters = Math.round(degrees / 90);
  return turned(smallCosSin((degrees - 90 * quarters) * DEGREE), quarters);
}

/** Cosine and sine of the turn whose first 64 bits are two unsigned halves.
 * @param {number} high
 * @param {number} low
 * @returns {[number, number]} */
function cosSinTurn(high, low) {
  // Quarters are rounded, so that the rest is between -1/2 and 1/2 of one.
  const quarters = (high + 0x20000000) >>> 30;
  const rest = ((high << 2) + low * 4 * HIGH) * HIGH;
  return turned(smallCosSin(rest * HALF_PI), quarters);
}

const ATAN = series(13, (n) => (n % 2 ? 1 : -1) / (2 * n + 3));
const ATAN_HALF = 0.4636476090008061;

/** The arc tangent of a number between 0 and 1.
 * @param {number} t */
function smallAtan(t) {
  let [base, x] = [0, t];
  if (t > 0.75) [base, x] = [HALF_PI / 2, (t - 1) / (t + 1)];
  else if (t > 0.25) [base, x] = [ATAN_HALF, (t - 0.5) / (1 + 0.5 * t)];
  const z = x * x;
  return base + (x + x * z * polynomial(ATAN, z));
}

/** The angle of the direction (x, y), from -pi to pi.
 * @param {number} y
 * @param {number} x */
function atan2(y, x) {
  const [across, along] = [Math.abs(y), Math.abs(x)];
  let angle = 0;
  if (across > along) angle = HALF_PI - (smallAtan(along / across) - HALF_PI_LOW);
  else if (along > 0) angle = smallAtan(across / along);
  if (x < 0) angle = 2 * HALF_PI - (angle - 2 * HALF_PI_LOW);
  return y < 0 ? -angle : angle;
}

/** Round to the nearest whole number, halves to even, never -0.
 * @param {number} x */
function rint(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  return (rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) + 0;
}

// The azimuthal equidistant plane of WGS84 around an origin: the distance and the direction of the geodesic to a place.
// The integrals of Bessel's equations are sums over four nodes (Gauss and Legendre): exact to rounding up to 1000 km.


const FLATTENING = 1 / 298.257223563;
const AXES = 1 - FLATTENING; // the ratio of the half axes
const SMALLER_AXIS = 6378137 * AXES;
const BEYOND = (1 - AXES * AXES) / (AXES * AXES); // the square of the second eccentricity
const FARTHEST = 1e6;
const TURNS = 7; // each divides the error of the longitude by 300
// Nodes between 0 and 1, and their weights.
const NODES = [
  [0.06943184420297371, 0.17392742256872692],
  [0.33000947820757187, 0.32607257743127305],
  [0.6699905217924281, 0.32607257743127305],
  [0.9305681557970262, 0.17392742256872692],
];

/** The largest ratio of the distance in the plane to that on the ground, between any two places so near to the origin.
 * @param {number} distance in metres */
function largestScale(distance) {
  const arc = distance / SMALLER_AXIS;
  return arc > 0 ? arc / cosSin(arc)[1] : 1;
}

/** Metres to the east and to the north in the plane around an origin; a RangeError beyond 1000 km.
 * @param {readonly number[]} origin longitude and latitude in degrees
 * @param {number} lon
 * @param {number} lat
 * @returns {[number, number]} */
function toPlane(origin, lon, lat) {
  const [cosStart, sinStart, start] = reduced(origin[1]);
  const [cosEnd, sinEnd, end] = reduced(lat);
  let turn = lon - origin[0];
  if (Math.abs(turn) > 180) turn -= turn > 0 ? 360 : -360;
  // The difference of two sines would lose digits.
  const rise = (AXES * cosSinDegrees(lat - origin[1])[1]) / (start * end);
  let [wider, arc, east, north, metres] = [turn, 0, 0, 0, 0];
  for (let i = 0; i < TURNS; i += 1) {
    const [cosTurn, sinTurn] = cosSinDegrees(wider);
    const sinHalf = cosSinDegrees(wider / 2)[1];
    const [p, q] = [cosEnd * sinTurn, rise + 2 * sinStart * cosEnd * sinHalf * sinHalf];
    const sine = sqrt(p * p + q * q);
    if (sine === 0) return [0, 0];
    [east, north] = [p / sine, q / sine];
    arc = atan2(sine, sinStart * sinEnd + cosStart * cosEnd * cosTurn);
    if (!(arc * SMALLER_AXIS < 1.01 * FARTHEST)) break;
    let more = 0;
    metres = 0;
    for (const [node, weight] of NODES) {
      const [cos, sin] = cosSin(arc * node);
      const height = sinStart * cos + north * cosStart * sin;
      const longer = sqrt(1 + BEYOND * height * height);
      more += (weight * (1 + AXES)) / (1 + AXES * longer);
      metres += weight * longer;
    }
    metres *= arc * SMALLER_AXIS;
    wider = turn + (FLATTENING * east * cosStart * arc * more) / DEGREE;
  }
  if (!(metres > 0 && metres <= FARTHEST)) throw new RangeError("the place is more than 1000 km from the origin");
  return [metres * east, metres * north];
}

/** Cosine and sine of the reduced latitude, and what they were divided by.
 * @param {number} lat
 * @returns {[number, number, number]} */
function reduced(lat) {
  const [cos, sin] = cosSinDegrees(lat);
  const length = sqrt(cos * cos + AXES * sin * (AXES * sin));
  return [cos / length, (AXES * sin) / length, length];
}

// A channel between the sites of a grid as a mechanism of every place, from a file that Python wrote.


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
class Interpolated {
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
function choose(row, pairs) {
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

// The public lattice of degrees: multiples of a power of ten of a degree, with longer steps in longitude near the poles.

const DECIMALS = 5;
const TENS = [1, 10, 100, 1000, 10000, 100000];
const POLAR = 84;
// Degrees from the pole where a step in longitude becomes a tenth, a hundredth, ... of a step in latitude.
const POLAR_DEGREES = [
  5.739170477266787, 0.5729673448571527, 0.0572957890623832, 0.0057295779608575285, 0.0005729577951403726,
  5.729577951309187e-5,
];

/** @param {unknown} decimals @returns {number} */
function asDecimals(decimals) {
  if (typeof decimals !== "number") throw new TypeError("decimals must be a number");
  if (!(Number.isInteger(decimals) && decimals >= 0 && decimals <= DECIMALS))
    throw new RangeError(`decimals must be a whole number from 0 to ${DECIMALS}, got ${decimals}`);
  return decimals;
}

/** How many decimals longitudes have in a row; -1 for steps of ten degrees.
 * @param {number} row
 * @param {number} decimals */
function longitudeDecimals(row, decimals) {
  const scale = TENS[decimals];
  const fromPole = 90 * scale - Math.abs(row);
  if (fromPole > (90 - POLAR) * scale) return decimals;
  let left = decimals;
  for (let power = 0; power <= decimals; power += 1)
    if (fromPole <= Math.floor(POLAR_DEGREES[power] * scale)) left -= 1;
  return left;
}

/** The longitude of a column of steps of 10^-decimals degrees, above -180 and at most 180.
 * @param {number} column
 * @param {number} decimals */
function wrapped(column, decimals) {
  const [scale, step] = decimals < 0 ? [1, 10] : [TENS[decimals], 1];
  const half = (180 * scale) / step;
  const turns = Math.ceil((column - half) / (2 * half));
  return (step * (column - 2 * half * turns)) / scale + 0;
}

// AES-256 (FIPS 197) of single blocks, and CBC-MAC. A block is four unsigned 32-bit numbers, little-endian.

const SBOX = new Uint8Array(256);
const MIXED = new Uint32Array(256); // what a byte of the first row contributes to its column

(() => {
  // p runs through all powers of the generator 3, q through their inverses.
  let [p, q] = [1, 1];
  do {
    p = (p ^ (p << 1) ^ (p & 0x80 ? 0x11b : 0)) & 0xff;
    q ^= q << 1;
    q ^= q << 2;
    q = (q ^ (q << 4)) & 0xff;
    if (q & 0x80) q ^= 0x09;
    const turned = q | (q << 8);
    SBOX[p] = (q ^ (turned >> 7) ^ (turned >> 6) ^ (turned >> 5) ^ (turned >> 4) ^ 0x63) & 0xff;
  } while (p !== 1);
  SBOX[0] = 0x63;
  SBOX.forEach((s, x) => {
    const twice = (s << 1) ^ (s & 0x80 ? 0x11b : 0);
    MIXED[x] = twice | (s << 8) | (s << 16) | ((twice ^ s) << 24);
  });
})();

/** @param {number} word */
const substituted = (word) =>
  SBOX[word & 255] | (SBOX[(word >>> 8) & 255] << 8) | (SBOX[(word >>> 16) & 255] << 16) | (SBOX[word >>> 24] << 24);

/** @param {number} word @param {number} bits */
const rotated = (word, bits) => (word << bits) | (word >>> (32 - bits));

/** @typedef {(a: number, b: number, c: number, d: number) => Uint32Array} Cipher */

/** AES-256 under a key of 32 bytes: from a block to a block.
 * @param {Uint8Array} key
 * @returns {Cipher} */
function aes256(key) {
  const keys = new Uint32Array(60);
  const view = new DataView(key.buffer, key.byteOffset, 32);
  let constant = 1;
  for (let i = 0; i < 60; i += 1) {
    if (i < 8) {
      keys[i] = view.getUint32(4 * i, true);
      continue;
    }
    let word = keys[i - 1];
    if (i % 8 === 0) {
      word = substituted(rotated(word, 24)) ^ constant;
      constant *= 2;
    } else if (i % 8 === 4) word = substituted(word);
    keys[i] = keys[i - 8] ^ word;
  }
  /** @param {number} a @param {number} b @param {number} c @param {number} d @param {number} i */
  const mixed = (a, b, c, d, i) =>
    MIXED[a & 255] ^
    rotated(MIXED[(b >>> 8) & 255], 8) ^
    rotated(MIXED[(c >>> 16) & 255], 16) ^
    rotated(MIXED[d >>> 24], 24) ^
    keys[i];
  /** @param {number} a @param {number} b @param {number} c @param {number} d @param {number} i */
  const last = (a, b, c, d, i) =>
    (SBOX[a & 255] | (SBOX[(b >>> 8) & 255] << 8) | (SBOX[(c >>> 16) & 255] << 16) | (SBOX[d >>> 24] << 24)) ^ keys[i];
  return (a, b, c, d) => {
    a ^= keys[0];
    b ^= keys[1];
    c ^= keys[2];
    d ^= keys[3];
    for (let i = 4; i < 56; i += 4) {
      const [e, f, g] = [mixed(a, b, c, d, i), mixed(b, c, d, a, i + 1), mixed(c, d, a, b, i + 2)];
      d = mixed(d, a, b, c, i + 3);
      a = e;
      b = f;
      c = g;
    }
    return Uint32Array.of(last(a, b, c, d, 56), last(b, c, d, a, 57), last(c, d, a, b, 58), last(d, a, b, c, 59));
  };
}

/** CBC-MAC over blocks; a cipher's result goes in where a MAC is continued.
 * @param {Cipher} cipher
 * @param {...(Uint32Array | number[])} blocks
 * @returns {Uint32Array} */
function cbcMac(cipher, ...blocks) {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (const block of blocks) [a, b, c, d] = cipher(a ^ block[0], b ^ block[1], c ^ block[2], d ^ block[3]);
  return Uint32Array.of(a, b, c, d);
}

// Sources of random 64-bit words, in pairs: four unsigned 32-bit numbers, the low half of a word first.


/** @typedef {(number: number) => Uint32Array} Pairs from 0, 1, 2, ... to the next pair of words of one draw */

const SCHEME = "geoind words 2";
const FINE = 0x40000000; // 2^30
const REMEMBERED = 64;

/** The pairs of the browser's cryptographic generator.
 * @type {Pairs} */
const systemPairs = () => crypto.getRandomValues(new Uint32Array(4));

/** Four halves of two doubles, -0 as 0.
 * @param {number} first
 * @param {number} second
 * @returns {Uint32Array} */
function doubleBlock(first, second) {
  const view = new DataView(new ArrayBuffer(16));
  view.setFloat64(0, first + 0, true);
  view.setFloat64(8, second + 0, true);
  return Uint32Array.of(
    view.getUint32(0, true),
    view.getUint32(4, true),
    view.getUint32(8, true),
    view.getUint32(12, true),
  );
}

/** Blocks of 16 bytes, the last one filled up with zeros.
 * @param {Uint8Array} bytes
 * @returns {Uint32Array[]} */
function blocksOf(bytes) {
  const filled = new Uint8Array(16 * Math.ceil(bytes.length / 16));
  filled.set(bytes);
  const view = new DataView(filled.buffer);
  return Array.from({ length: filled.length / 16 }, (_, i) =>
    Uint32Array.from({ length: 4 }, (_, j) => view.getUint32(16 * i + 4 * j, true)),
  );
}

/** @param {string} text */
const utf8 = (text) => new TextEncoder().encode(text);

/** Ciphers of the last keys and purposes: a cipher takes longer to set up than a report to draw.
 * @type {Map<string, Cipher>} */
const ciphers = new Map();

/** AES under the key of a purpose.
 * @param {Uint8Array} key
 * @param {string} purpose
 * @param {string} person the personalisation of BLAKE2b
 * @returns {Cipher} */
function cipherOf(key, purpose, person = SCHEME) {
  const name = `${toHex(key)} ${person} ${purpose}`;
  let cipher = ciphers.get(name);
  if (!cipher) {
    if (ciphers.size >= REMEMBERED) ciphers.clear();
    cipher = aes256(blake2b(utf8(purpose), { key, size: 32, person }));
    ciphers.set(name, cipher);
  }
  return cipher;
}

/** @typedef {string | number | bigint | Uint8Array} Label */

/** The kind of a label and its block.
 * @param {Uint8Array} key
 * @param {Label} label
 * @returns {["integer" | "text", Uint32Array]} */
function labelBlock(key, label) {
  if (typeof label === "bigint" || typeof label === "number") {
    const whole = BigInt.asUintN(64, asWhole(label));
    return ["integer", Uint32Array.of(Number(whole & 0xffffffffn), Number(whole >> 32n), 0, 0)];
  }
  let message = label;
  if (typeof label === "string") message = utf8(wellFormed(label));
  else if (label instanceof Uint8Array) message = Uint8Array.of(255, ...label);
  else throw new TypeError("label must be text, a whole number, or bytes in a Uint8Array");
  return ["text", cbcMac(cipherOf(key, "text labels"), [message.length, 0, 0, 0], ...blocksOf(message))];
}

/** @param {number | bigint} label */
function asWhole(label) {
  if (typeof label === "number" && !Number.isSafeInteger(label))
    throw new RangeError("a label that is a number must be whole; use a BigInt beyond 2^53");
  const whole = BigInt(label);
  if (whole < -(2n ** 63n) || whole >= 2n ** 64n) throw new RangeError("a label that is a number must have 64 bits");
  return whole;
}

/** @param {string} text */
function wellFormed(text) {
  if (/\p{Surrogate}/u.test(text)) throw new RangeError("text must not have lone surrogates");
  return text;
}

/** The words of a record, by the counter's halves: the same for the same key, label, place and purpose.
 * @param {Uint8Array} key
 * @param {Label} label
 * @param {[number, number]} place longitude and latitude
 * @param {string} purpose
 * @returns {(low: number, high: number) => Uint32Array} */
function keyedWords(key, label, place, purpose) {
  const [kind, [a, b, c, d]] = labelBlock(key, label);
  const cipher = cipherOf(key, `${kind} labels: ${purpose}`);
  // Rounded, so that the last bits of a coordinate do not make a second report.
  const block = doubleBlock(rint(place[0] * FINE), rint(place[1] * FINE));
  return (low, high) => cbcMac(cipher, [a, b, c ^ low, d ^ high], block);
}

/** The pairs of a record's draw: the first, and the further ones from the counter 2^32 on.
 * @param {Uint8Array} key
 * @param {Label} label
 * @param {[number, number]} place
 * @param {string} purpose
 * @returns {Pairs} */
function keyedPairs(key, label, place, purpose) {
  const words = keyedWords(key, label, place, purpose);
  return (number) => (number ? words(number - 1, 1) : words(0, 0));
}

// Ball arithmetic: real numbers as whole numbers of 2^-bits, each with a bound on its error in the same unit. Used where
// doubles cannot decide. Every operation enlarges the bound by at least what it rounds off (docs/device.md).

/** @typedef {{ m: bigint, r: bigint }} Ball the numbers from (m - r) 2^-bits to (m + r) 2^-bits */

/** @param {bigint} x */
const abs = (x) => (x < 0n ? -x : x);
/** @param {bigint} x a positive number */
const bitLength = (x) => {
  const digits = x.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
};

/** The whole part of a square root.
 * @param {bigint} n */
function wholeRoot(n) {
  if (n <= 0n) return 0n;
  const shift = BigInt(Math.max(0, bitLength(n) - 100) & ~1);
  // Newton's method falls from any start above the root.
  let root = (BigInt(Math.floor(Math.sqrt(Number(n >> shift)))) + 2n) << (shift / 2n);
  for (;;) {
    const next = (root + n / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

class Balls {
  /** @param {number} bits of the fraction */
  constructor(bits) {
    this.bits = BigInt(bits);
    this.one = 1n << this.bits;
    const guard = new Series(this.bits + 32n);
    /** @type {Ball} */
    this.pi = { m: (16n * guard.arcTangent(5n) - 4n * guard.arcTangent(239n)) >> 32n, r: 2n };
    this.ln2 = guard.twiceAreaTangent(3n) >> 32n; // within 2
  }

  /** The ball of a double.
   * @param {number} x
   * @returns {Ball} */
  of(x) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    const word = view.getBigUint64(0);
    const power = (word >> 52n) & 0x7ffn;
    const whole = (word & 0xfffffffffffffn) | (power ? 0x10000000000000n : 0n);
    const shift = this.bits + (power || 1n) - 1075n;
    const m = shift >= 0n ? whole << shift : whole >> -shift;
    return { m: word >> 63n ? -m : m, r: shift >= 0n ? 0n : 1n };
  }

  /** The ball of the numbers between 0 and 1 whose first bits are given.
   * @param {bigint} number
   * @param {number} known how many bits
   * @returns {Ball} */
  uniform(number, known) {
    const half = 1n << (this.bits - BigInt(known) - 1n);
    return { m: (2n * number + 1n) * half, r: half };
  }

  /** The smallest ball that holds two numbers.
   * @param {bigint} low
   * @param {bigint} high
   * @returns {Ball} */
  between(low, high) {
    return { m: (low + high) >> 1n, r: ((high - low) >> 1n) + 1n };
  }

  /** @param {Ball} a @param {Ball} b @returns {Ball} */
  add(a, b) {
    return { m: a.m + b.m, r: a.r + b.r };
  }

  /** @param {Ball} a @param {Ball} b @returns {Ball} */
  sub(a, b) {
    return { m: a.m - b.m, r: a.r + b.r };
  }

  /** @param {Ball} a @param {Ball} b @returns {Ball} */
  mul(a, b) {
    const r = (abs(a.m) * b.r + abs(b.m) * a.r + a.r * b.r) >> this.bits;
    return { m: (a.m * b.m) >> this.bits, r: r + 2n };
  }

  /** A ball times a whole number.
   * @param {Ball} a @param {bigint} by @returns {Ball} */
  times(a, by) {
    return { m: a.m * by, r: a.r * abs(by) };
  }

  /** A ball over a positive whole number.
   * @param {Ball} a @param {bigint} by @returns {Ball} */
  over(a, by) {
    return { m: a.m / by, r: a.r / by + 2n };
  }

  /** The quotient of two balls, the second away from 0.
   * @param {Ball} a @param {Ball} b @returns {Ball} */
  div(a, b) {
    const m = (a.m << this.bits) / b.m;
    return { m, r: ((a.r << this.bits) + abs(m) * b.r) / (abs(b.m) - b.r) + 2n };
  }

  /** The square root of the part of a ball that is not negative.
   * @param {Ball} a @returns {Ball} */
  sqrt(a) {
    return this.between(wholeRoot((a.m - a.r) << this.bits), wholeRoot((a.m + a.r) << this.bits) + 1n);
  }

  /** Cosine and sine.
   * @param {Ball} a @returns {[Ball, Ball]} */
  cosSin(a) {
    const quarter = this.pi.m >> 1n;
    const quarters = (a.m + (quarter >> 1n)) / quarter - (a.m + (quarter >> 1n) < 0n ? 1n : 0n);
    const x = a.m - quarters * quarter;
    const z = (x * x) >> this.bits;
    let [cos, sin, count] = [this.one, this.one, 0n];
    for (let [c, s, n] = [this.one, this.one, 1n]; s; n += 2n) {
      // With z below 0.7 the error of a term stays below 4, and the terms left out are below the last.
      c = -((c * z) >> this.bits) / (n * (n + 1n));
      s = -((s * z) >> this.bits) / ((n + 1n) * (n + 2n));
      cos += c;
      sin += s;
      count += 1n;
      if (abs(s) < 4n && abs(c) < 4n) break;
    }
    sin = (sin * x) >> this.bits;
    const r = a.r + 2n * abs(quarters) + 4n * count + 16n;
    if (quarters & 1n) [cos, sin] = [-sin, cos];
    if (quarters & 2n) [cos, sin] = [-cos, -sin];
    return [
      { m: cos, r },
      { m: sin, r },
    ];
  }

  /** The exponential of minus a number that is not negative.
   * @param {bigint} x
   * @returns {Ball} */
  expMinus(x) {
    const halvings = x / this.ln2;
    const rest = x - halvings * this.ln2;
    let [sum, count] = [this.one, 0n];
    for (let term = this.one; abs(term) >= 4n; ) {
      count += 1n;
      term = -((term * rest) >> this.bits) / count;
      sum += term;
    }
    const r = 4n * count + 2n * halvings + 16n;
    return { m: sum >> halvings, r: (r >> halvings) + 2n };
  }

  /** The natural logarithm of number / 2^known.
   * @param {bigint} number positive
   * @param {number} known
   * @returns {Ball} */
  log(number, known) {
    let length = bitLength(number) - 1;
    let x = number << (this.bits - BigInt(length));
    if (x * x > this.one * this.one * 2n) {
      length += 1;
      x = number << (this.bits - BigInt(length));
    }
    const f = ((x - this.one) << this.bits) / (x + this.one);
    const z = (f * f) >> this.bits;
    let [sum, count] = [f, 1n];
    for (let term = f; abs(term) >= 4n; count += 1n) {
      term = (term * z) >> this.bits;
      sum += term / (2n * count + 1n);
    }
    const power = BigInt(length - known);
    return { m: 2n * sum + power * this.ln2, r: 8n * count + 2n * abs(power) + 16n };
  }

  /** The angle of a direction, or null where the ball of the direction holds 0.
   * @param {Ball} y @param {Ball} x @returns {Ball | null} */
  atan2(y, x) {
    const [across, along] = [abs(y.m), abs(x.m)];
    const far = wholeRoot(y.m * y.m + x.m * x.m);
    const off = y.r + x.r;
    if (2n * off >= far) return null;
    const steep = across > along;
    let t = ((steep ? along : across) << this.bits) / (steep ? across : along);
    // Halved three times, the angle is below pi / 32.
    for (let i = 0; i < 3; i += 1) t = (t << this.bits) / (this.one + wholeRoot(this.one * this.one + t * t));
    const z = (t * t) >> this.bits;
    let [sum, count] = [t, 1n];
    for (let term = t; abs(term) >= 4n; count += 1n) {
      term = -((term * z) >> this.bits);
      sum += term / (2n * count + 1n);
    }
    let m = 8n * sum;
    if (steep) m = (this.pi.m >> 1n) - m;
    if (x.m < 0n) m = this.pi.m - m;
    // An arc is at most 1.05 times its sine up to one half.
    return { m: y.m < 0n ? -m : m, r: ((2n * off) << this.bits) / far + 24n * count + 80n };
  }

  /** The whole number nearest to every number of a ball, or null if there are several.
   * @param {Ball} a @returns {bigint | null} */
  nearest(a) {
    const half = this.one >> 1n;
    const low = (a.m - a.r + half) >> this.bits;
    return low === (a.m + a.r + half) >> this.bits ? low : null;
  }
}

/** Series of whole numbers 1 / n, as whole numbers of 2^-bits within the number of their terms. */
class Series {
  /** @param {bigint} bits */
  constructor(bits) {
    this.one = 1n << bits;
  }

  /** @param {bigint} n @param {bigint} sign @returns {bigint} */
  sum(n, sign) {
    let [total, term] = [0n, this.one / n];
    for (let i = 1n; term; i += 2n) {
      total += term / i;
      term = (sign * term) / (n * n);
    }
    return total;
  }

  /** The arc tangent of 1 / n.
   * @param {bigint} n */
  arcTangent(n) {
    return this.sum(n, -1n);
  }

  /** ln((n + 1) / (n - 1)): ln 2 for n = 3.
   * @param {bigint} n */
  twiceAreaTangent(n) {
    return 2n * this.sum(n, 1n);
  }
}

/** @type {Map<number, Balls>} */
const known = new Map();

/** Ball arithmetic with so many bits; its constants are computed once.
 * @param {number} bits */
function ballsOf(bits) {
  const found = known.get(bits) ?? new Balls(bits);
  known.set(bits, found);
  return found;
}

// SphericalLaplace: the noise, drawn exactly. Doubles decide where their error cannot matter, ball arithmetic elsewhere.



const EARTH_RADIUS = 6371008.8;
const WGS84_FACTOR = 1.0057; // no great circle is longer than this times the WGS84 distance
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
function hexOf(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const power = (view.getUint16(0) >> 4) - 1023;
  const digits = (view.getBigUint64(0) & 0xfffffffffffffn).toString(16).padStart(13, "0");
  return `0x1.${digits}p${power < 0 ? "" : "+"}${power}`;
}

class SphericalLaplace {
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
function planarRadius(excess) {
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
const isAbove = (a, b) => a.m - a.r > b.m + b.r;

// One report of a true location.


const LEAST_MEAN_ERROR = 10;

/** @type {SphericalLaplace | null} */
let last = null;

/** The mechanism of a call; the last one is kept.
 * @param {number} epsilon
 * @param {number} [decimals] */
function globe(epsilon, decimals = DECIMALS) {
  if (last?.epsilon !== epsilon || last.decimals !== decimals) last = new SphericalLaplace(epsilon, decimals);
  return last;
}

/** Epsilon; noise of less than 10 m on average is likely a unit error.
 * @param {number} epsilon */
function enoughNoise(epsilon) {
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
 * @param {Label} [options.label] the record's identity, with a key
 * @returns {{ lat: number, lon: number }} on the public lattice
 * @throws {TypeError | RangeError} before anything is drawn
 */
function obfuscate({ lat, lon, level, radius, epsilon, decimals, mechanism, key, label }) {
  if (mechanism !== undefined) {
    if (!(mechanism instanceof Interpolated)) throw new TypeError("mechanism must be an Interpolated");
    if ([level, radius, epsilon, decimals].some((option) => option !== undefined))
      throw new TypeError("give a mechanism, or epsilon, or level and radius, not several of them");
  }
  const chosen = mechanism ?? globe(enoughNoise(asEpsilon({ epsilon, level, radius })), decimals);
  const [longitude, latitude] = asLonLat(lat, lon);
  if (key === undefined && label !== undefined) throw new TypeError("label goes with a key");
  if (key !== undefined && label === undefined) throw new TypeError("key needs a label: the identity of the record");
  /** @type {Source} */
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
function reach(epsilon, confidence, decimals) {
  return globe(epsilon, decimals).reach(confidence);
}

/** Epsilon per metre: level / radius.
 * @param {{ level: number, radius: number }} options */
const epsilonFor = ({ level, radius }) => asEpsilon({ level, radius });

// The same report for the same place: a repeated question gets the same answer, which is paid once.


/** @typedef {[number, number, number]} Vector */

/** The same report for the same person, cell and epsilon, without stored records.
 *
 * It reveals, in addition to the report, which reports came from the same cell. The borders of the cells are secret: the
 * grid is turned at random, by the person's secret. */
class SamePlace {
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
   * @param {Budget} [options.budget] charged once for each cell
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

// Private questions about a true location. Doubles compare noisy distances; where they are not sure, more bits of the
// same noise and ball arithmetic decide.


/** @typedef {[number, number]} Place longitude and latitude */

const FRESH = 1;
const LIMIT = 3;
const TEST = 4;
const CHOICE = 5;
const NO_CHOICE = 6;
const SEEN = 7;
const [SURE, CLOSE, TAIL] = [1e-9, 1e-7, twoTo(-30)];

/** The words of all sessions of one person under one key (docs/keyed-noise.md, sessions). */
class SessionWords {
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
function shares(epsilon) {
  const forLimit = epsilon / (1 + 1.5874010519681994);
  return [forLimit, epsilon - forLimit];
}

/** Great-circle distance in metres.
 * @param {Place} here @param {Place} there */
function arcLength(here, there) {
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
function hasLeft(words, seed, place, run, limit) {
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
function nearest(words, seed, here, places, limit, epsilon) {
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

// A session: one person's positions over time, each answered with a place that may be published.



const ANCHORS = 64;
const FAR = 1 / 3;

/** Staying is free: the last report is repeated until a private test finds that the person has moved. */
class SparseVector {
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

class TraceSession {
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
   * @param {Budget} [options.budget] pays, and stores the newest state for each person and key
   * @param {PrivateZone} [options.zone] near the home, the answer is its centre
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
   * @param {{ key: Uint8Array | string, person?: string | number, budget?: Budget,
   *   zone?: PrivateZone }} options
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

// Numbers for people, in English.

/** A length.
 * @param {number} value in metres */
function metres(value) {
  if (value < 9.95) return `${value.toFixed(value < 1 ? 1 : 0)} m`;
  return value < 995 ? `${Math.round(value)} m` : `${(value / 1000).toFixed(value < 9950 ? 1 : 0)} km`;
}

/** A share of 1.
 * @param {number} share */
function percent(share) {
  if (share >= 0.995 && share < 1) return "more than 99 %";
  return `${share >= 0.0995 || share === 0 ? Math.round(100 * share) : (100 * share).toPrecision(2)} %`;
}

/** A factor by which odds change.
 * @param {number} value */
const factor = (value) =>
  value < 9.95 ? value.toFixed(1) : value < 1e4 ? String(Math.round(value)) : `10^${Math.round(Math.log10(value))}`;

/** A number of things.
 * @param {number} count
 * @param {string} one
 * @param {string} [more] */
const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

// A zone around a home: inside, a session answers with one place, and entering and leaving are private events.


const [ZONE_CONFIDENCE, ZONE_CELL, LIMIT_RADII, TEST_RADII] = [0.99, 200, 3, 10]; // as in geoind.traces.zones

/** A disk around a noisy home, in which a session answers with the centre. Centre and radius may be public. */
class PrivateZone {
  /** @param {{ lat: number, lon: number, radius: number }} options the centre, and metres */
  constructor({ lat, lon, radius }) {
    const [longitude, latitude] = asLonLat(lat, lon);
    this.lon = longitude;
    this.lat = latitude;
    this.radius = asPositive(radius, "radius");
    Object.freeze(this);
  }

  /** A zone around a home; costs epsilon, once: the centre is a report of the cell of 200 m in which the home lies.
   * @param {object} options
   * @param {number} options.lat of the home
   * @param {number} options.lon
   * @param {number} [options.epsilon] of the centre, per metre, or level and radius
   * @param {number} [options.level]
   * @param {number} [options.radius]
   * @param {Uint8Array | string} options.key 32 secret bytes: the same home gets the same zone again, free of charge
   * @param {number} [options.margin] metres by which the zone's radius exceeds the noise of the centre
   * @param {string | number} [options.person] who pays
   * @param {Budget} [options.budget]
   */
  static around({ lat, lon, epsilon, level, radius, key, margin = 200, person = "home", budget }) {
    const cost = enoughNoise(asEpsilon({ epsilon, level, radius }));
    // In whole metres: logarithms differ between machines in the last bit, and keyed sessions must not.
    const disk = Math.ceil(reach(cost, ZONE_CONFIDENCE) + asPositive(margin, "margin"));
    return new PrivateZone({
      ...new SamePlace(key, { cell: ZONE_CELL }).obfuscate({ lat, lon, person, epsilon: cost, budget }),
      radius: disk,
    });
  }

  /** How far from the centre the person may go, in metres, before noise. */
  get limit() {
    return LIMIT_RADII * this.radius;
  }

  /** Epsilon of all tests until the session leaves the zone, per metre. */
  get test() {
    return TEST_RADII / this.radius;
  }
}

export {
  Budget,
  BudgetExceededError,
  Interpolated,
  PrivateZone,
  SamePlace,
  SparseVector,
  SphericalLaplace,
  TraceSession,
  epsilonFor,
  factor,
  many,
  metres,
  obfuscate,
  percent,
  reach,
};
