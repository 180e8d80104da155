// Numbers for people, in English.

/** A length.
 * @param {number} value in metres */
export function metres(value) {
  if (value < 9.95) return `${value.toFixed(value < 1 ? 1 : 0)} m`;
  return value < 995 ? `${Math.round(value)} m` : `${(value / 1000).toFixed(value < 9950 ? 1 : 0)} km`;
}

/** A share of 1.
 * @param {number} share */
export function percent(share) {
  if (share >= 0.995 && share < 1) return "more than 99 %";
  return `${share >= 0.0995 || share === 0 ? Math.round(100 * share) : (100 * share).toPrecision(2)} %`;
}

/** A factor by which odds change.
 * @param {number} value */
export const factor = (value) =>
  value < 9.95 ? value.toFixed(1) : value < 1e4 ? String(Math.round(value)) : `10^${Math.round(Math.log10(value))}`;

/** A number of things.
 * @param {number} count
 * @param {string} one
 * @param {string} [more] */
export const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
