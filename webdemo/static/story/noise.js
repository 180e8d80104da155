// Noise in the town's plane: reports are drawn by the module for devices, exactly, and shown in metres around the centre.

import { epsilonFor, SphericalLaplace } from "../../device/geoind.js";

export const noise = (() => {
  const RADIUS = 6371008.8,
    DEGREE = Math.PI / 180;
  const [lon0, lat0] = TOWN.centre,
    [cos0, sin0] = [Math.cos(lat0 * DEGREE), Math.sin(lat0 * DEGREE)];

  // Metres to the east and north of the centre, along great circles from it, and back.
  function toDegrees({ x, y }) {
    const far = Math.hypot(x, y),
      arc = far / RADIUS,
      [north, east] = far ? [y / far, x / far] : [1, 0];
    const [sin, cos] = [Math.sin(arc), Math.cos(arc)],
      height = cos * sin0 + sin * cos0 * north,
      outward = cos * cos0 - sin * sin0 * north;
    const lat = Math.atan2(height, Math.hypot(outward, sin * east)),
      lon = lon0 * DEGREE + Math.atan2(sin * east, outward);
    return { lat: lat / DEGREE, lon: ((lon / DEGREE + 540) % 360) - 180 };
  }
  function toMetres({ lat, lon }) {
    const turn = (lon - lon0) * DEGREE,
      [cos, sin] = [Math.cos(lat * DEGREE), Math.sin(lat * DEGREE)];
    const east = cos * Math.sin(turn),
      north = cos0 * sin - sin0 * cos * Math.cos(turn),
      across = Math.hypot(east, north);
    const far = RADIUS * Math.atan2(across, sin0 * sin + cos0 * cos * Math.cos(turn)),
      scale = across ? far / across : 0;
    return { x: east * scale, y: north * scale };
  }

  // An epsilon of the plane, per metre along a great circle, as the library's, per metre on the ellipsoid.
  const promised = (epsilon) => epsilon * TOWN.margin;
  let last = null;
  function globe(epsilon) {
    if (last?.epsilon !== promised(epsilon)) last = new SphericalLaplace(promised(epsilon));
    return last;
  }
  const radiusQuantile = (share, epsilon) => globe(epsilon).radiusQuantile(share);
  const meanRadius = (epsilon) => globe(epsilon).meanRadius;

  // Words from the browser's cryptographic generator or, for a run that can be repeated, from a seed (sfc32 by Doty-Humphrey).
  let seeded = null;
  function seed(number) {
    let a = 0x9e3779b9,
      b = 0x243f6a88,
      c = number,
      d = 1;
    const word = () => {
      const t = (a + b + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + t) | 0;
      return t >>> 0;
    };
    seeded = number === null ? null : word;
    for (let i = 0; i < 20; i += 1) word();
  }
  const filled = (array) => (seeded ? array.map(() => seeded()) : crypto.getRandomValues(array));

  // Uniform in the open interval from 0 to 1.
  function uniform() {
    const [high, low] = filled(new Uint32Array(2));
    return ((high >>> 5) * 67108864 + (low >>> 6) + 0.5) / 9007199254740992;
  }

  // What a report needs by chance. Kept while a dial turns, so that the same noise grows and shrinks.
  const draw = () => filled(new Uint32Array(4));
  const newKey = () => filled(new Uint8Array(32));

  function report(truth, epsilon, dice = draw()) {
    const { lat, lon } = toDegrees(truth);
    return toMetres(globe(epsilon).sample(lon, lat, (number) => (number ? draw() : dice)));
  }

  const epsilonOf = (factor, radius) => epsilonFor({ level: Math.log(factor), radius });
  // Asked for a circle this large around the report, a service misses nothing with this confidence.
  const retrievalRadius = (interest, confidence, epsilon) => interest + radiusQuantile(confidence, epsilon);

  return {
    toDegrees,
    toMetres,
    promised,
    radiusQuantile,
    meanRadius,
    seed,
    uniform,
    draw,
    newKey,
    report,
    epsilonFor: epsilonOf,
    retrievalRadius,
  };
})();
