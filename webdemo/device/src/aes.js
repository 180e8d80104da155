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
export function aes256(key) {
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
export function cbcMac(cipher, ...blocks) {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (const block of blocks) [a, b, c, d] = cipher(a ^ block[0], b ^ block[1], c ^ block[2], d ^ block[3]);
  return Uint32Array.of(a, b, c, d);
}
