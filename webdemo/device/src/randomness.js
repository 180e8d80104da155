// Sources of random 64-bit words, in pairs: four unsigned 32-bit numbers, the low half of a word first.

import { aes256, cbcMac } from "./aes.js";
import { blake2b } from "./blake2b.js";
import { toHex } from "./checks.js";
import { rint } from "./functions.js";

/** @typedef {(number: number) => Uint32Array} Pairs from 0, 1, 2, ... to the next pair of words of one draw */
/** @typedef {import("./aes.js").Cipher} Cipher */

const SCHEME = "geoind words 2";
const FINE = 0x40000000; // 2^30
const REMEMBERED = 64;

/** The pairs of the browser's cryptographic generator.
 * @type {Pairs} */
export const systemPairs = () => crypto.getRandomValues(new Uint32Array(4));

/** Four halves of two doubles, -0 as 0.
 * @param {number} first
 * @param {number} second
 * @returns {Uint32Array} */
export function doubleBlock(first, second) {
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
export function blocksOf(bytes) {
  const filled = new Uint8Array(16 * Math.ceil(bytes.length / 16));
  filled.set(bytes);
  const view = new DataView(filled.buffer);
  return Array.from({ length: filled.length / 16 }, (_, i) =>
    Uint32Array.from({ length: 4 }, (_, j) => view.getUint32(16 * i + 4 * j, true)),
  );
}

/** @param {string} text */
export const utf8 = (text) => new TextEncoder().encode(text);

/** Ciphers of the last keys and purposes: a cipher takes longer to set up than a report to draw.
 * @type {Map<string, Cipher>} */
const ciphers = new Map();

/** AES under the key of a purpose.
 * @param {Uint8Array} key
 * @param {string} purpose
 * @param {string} person the personalisation of BLAKE2b
 * @returns {Cipher} */
export function cipherOf(key, purpose, person = SCHEME) {
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
export function wellFormed(text) {
  if (/\p{Surrogate}/u.test(text)) throw new RangeError("text must not have lone surrogates");
  return text;
}

/** The words of a record, by the counter's halves: the same for the same key, label, place and purpose.
 * @param {Uint8Array} key
 * @param {Label} label
 * @param {[number, number]} place longitude and latitude
 * @param {string} purpose
 * @returns {(low: number, high: number) => Uint32Array} */
export function keyedWords(key, label, place, purpose) {
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
export function keyedPairs(key, label, place, purpose) {
  const words = keyedWords(key, label, place, purpose);
  return (number) => (number ? words(number - 1, 1) : words(0, 0));
}
