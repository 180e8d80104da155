// Elementary functions in doubles, made of sums, products and quotients: the standard of JavaScript promises no accuracy
// of Math.sin and the like. Each is within 16 u of its value, u = 2^-53; docs/device.md has the bounds.

export const HALF_PI = 1.5707963267948966;
const HALF_PI_LOW = 6.123233995736766e-17;
const LN2_HIGH = 0.6931471803691238; // the last 21 bits are zero: a small multiple is exact
const LN2_LOW = 1.9082149292705877e-10;
export const DEGREE = 0.017453292519943295;

/** A power of two, exactly: the standard lets the operator ** round differently.
 * @param {number} n */
export function twoTo(n) {
  let power = 1;
  for (let i = 0; i < Math.abs(n); i += 1) power *= n < 0 ? 0.5 : 2;
  return power;
}

/** A number between 0 and 1 from its first 64 bits, as two unsigned halves.
 * @param {number} high
 * @param {number} low */
export const unit = (high, low) => high * HIGH + low * LOW;
const HIGH = twoTo(-32);
const LOW = twoTo(-64);

/** The value of a polynomial, the coefficient of the highest power first.
 * @param {readonly number[]} coefficients
 * @param {number} x */
export function polynomial(coefficients, x) {
  let total = 0;
  for (const coefficient of coefficients) total = total * x + coefficient;
  return total;
}

/** A root of correct size is all that is assumed of Math.sqrt: a step of Newton's method follows.
 * @param {number} x */
export function sqrt(x) {
  const root = Math.sqrt(x);
  return root > 0 ? 0.5 * (root + x / root) : 0;
}

/** @param {number} count @param {(n: number) => number} term */
const series = (count, term) => Array.from({ length: count }, (_, i) => term(count - 1 - i));

const LOG = series(12, (n) => 2 / (2 * n + 3));

/** The natural logarithm, for 2^-64 <= x <= 2^64.
 * @param {number} x */
export function log(x) {
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
export function cosSin(x) {
  return x < 0.7854 ? smallCosSin(x) : turned(smallCosSin(x - HALF_PI - HALF_PI_LOW), 1);
}

/** Cosine and sine of degrees, at most 360.
 * @param {number} degrees
 * @returns {[number, number]} */
export function cosSinDegrees(degrees) {
  const quarters = Math.round(degrees / 90);
  return turned(smallCosSin((degrees - 90 * quarters) * DEGREE), quarters);
}

/** Cosine and sine of the turn whose first 64 bits are two unsigned halves.
 * @param {number} high
 * @param {number} low
 * @returns {[number, number]} */
export function cosSinTurn(high, low) {
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
export function atan2(y, x) {
  const [across, along] = [Math.abs(y), Math.abs(x)];
  let angle = 0;
  if (across > along) angle = HALF_PI - (smallAtan(along / across) - HALF_PI_LOW);
  else if (along > 0) angle = smallAtan(across / along);
  if (x < 0) angle = 2 * HALF_PI - (angle - 2 * HALF_PI_LOW);
  return y < 0 ? -angle : angle;
}

/** Round to the nearest whole number, halves to even, never -0.
 * @param {number} x */
export function rint(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  return (rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) + 0;
}
