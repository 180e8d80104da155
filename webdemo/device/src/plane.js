// The azimuthal equidistant plane of WGS84 around an origin: the distance and the direction of the geodesic to a place.
// The integrals of Bessel's equations are sums over four nodes (Gauss and Legendre): exact to rounding up to 1000 km.

import { atan2, cosSin, cosSinDegrees, DEGREE, sqrt } from "./functions.js";

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
export function largestScale(distance) {
  const arc = distance / SMALLER_AXIS;
  return arc > 0 ? arc / cosSin(arc)[1] : 1;
}

/** Metres to the east and to the north in the plane around an origin; a RangeError beyond 1000 km.
 * @param {readonly number[]} origin longitude and latitude in degrees
 * @param {number} lon
 * @param {number} lat
 * @returns {[number, number]} */
export function toPlane(origin, lon, lat) {
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
