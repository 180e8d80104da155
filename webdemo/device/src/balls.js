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

export class Balls {
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
export function ballsOf(bits) {
  const found = known.get(bits) ?? new Balls(bits);
  known.set(bits, found);
  return found;
}
