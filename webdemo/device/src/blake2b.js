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
export function blake2b(message, { key = new Uint8Array(0), size, person = "" }) {
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
