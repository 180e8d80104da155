// The public lattice of degrees: multiples of a power of ten of a degree, with longer steps in longitude near the poles.

export const DECIMALS = 5;
export const TENS = [1, 10, 100, 1000, 10000, 100000];
const POLAR = 84;
// Degrees from the pole where a step in longitude becomes a tenth, a hundredth, ... of a step in latitude.
const POLAR_DEGREES = [
  5.739170477266787, 0.5729673448571527, 0.0572957890623832, 0.0057295779608575285, 0.0005729577951403726,
  5.729577951309187e-5,
];

/** @param {unknown} decimals @returns {number} */
export function asDecimals(decimals) {
  if (typeof decimals !== "number") throw new TypeError("decimals must be a number");
  if (!(Number.isInteger(decimals) && decimals >= 0 && decimals <= DECIMALS))
    throw new RangeError(`decimals must be a whole number from 0 to ${DECIMALS}, got ${decimals}`);
  return decimals;
}

/** How many decimals longitudes have in a row; -1 for steps of ten degrees.
 * @param {number} row
 * @param {number} decimals */
export function longitudeDecimals(row, decimals) {
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
export function wrapped(column, decimals) {
  const [scale, step] = decimals < 0 ? [1, 10] : [TENS[decimals], 1];
  const half = (180 * scale) / step;
  const turns = Math.ceil((column - half) / (2 * half));
  return (step * (column - 2 * half * turns)) / scale + 0;
}
