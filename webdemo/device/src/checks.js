// What callers give, checked before anything is drawn. Messages never contain a coordinate.

/** @param {unknown} value @param {string} name @returns {number} */
export function asNumber(value, name) {
  if (typeof value !== "number")
    throw new TypeError(`${name} must be a number, got ${value === null ? "null" : typeof value}`);
  return value;
}

/** @param {unknown} value @param {string} name @returns {number} */
export function asFinite(value, name) {
  const number = asNumber(value, name);
  if (!Number.isFinite(number)) throw new RangeError(`${name} must be finite`);
  return number;
}

/** @param {unknown} value @param {string} name @returns {number} */
export function asPositive(value, name) {
  const number = asNumber(value, name);
  if (!(number > 0 && number < Infinity)) throw new RangeError(`${name} must be positive and finite, got ${number}`);
  return number;
}

/** @param {unknown} value @param {string} name @returns {number} */
export function asUnit(value, name) {
  const number = asNumber(value, name);
  if (!(number > 0 && number < 1)) throw new RangeError(`${name} must lie strictly between 0 and 1, got ${number}`);
  return number;
}

/** @param {unknown} lat @param {unknown} lon @returns {[number, number]} longitude and latitude, never -0 */
export function asLonLat(lat, lon) {
  const [latitude, longitude] = [asFinite(lat, "lat"), asFinite(lon, "lon")];
  if (!(Math.abs(longitude) <= 180)) throw new RangeError("longitude must be between -180 and 180 degrees");
  if (!(Math.abs(latitude) <= 90)) throw new RangeError("latitude must be between -90 and 90 degrees");
  return [longitude + 0, latitude + 0];
}

/** 32 secret bytes, given as bytes or as 64 hexadecimal digits.
 * @param {unknown} key @returns {Uint8Array} */
export function asKey(key) {
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
export function asPerson(person) {
  if (typeof person === "bigint" || Number.isSafeInteger(person)) return String(person);
  if (typeof person !== "string") throw new TypeError("person must be text or a whole number");
  if (!person || person !== person.trim() || /\p{C}|(?! )\p{Z}/u.test(person))
    throw new RangeError("person must be a name of printable characters without space around it");
  return person.normalize("NFC");
}

/** Epsilon per metre of an option `epsilon`, or of `level` and `radius`.
 * @param {{ epsilon?: number, level?: number, radius?: number }} options @returns {number} */
export function asEpsilon({ epsilon, level, radius }) {
  if (epsilon === undefined) {
    if (level === undefined || radius === undefined) throw new TypeError("give epsilon, or both level and radius");
    return asPositive(asPositive(level, "level") / asPositive(radius, "radius"), "level / radius");
  }
  if (level !== undefined || radius !== undefined) throw new TypeError("give epsilon, or level and radius, not both");
  return asPositive(epsilon, "epsilon");
}

/** @param {Uint8Array} bytes */
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
