// A zone around a home: inside, a session answers with one place, and entering and leaving are private events.

import { asEpsilon, asLonLat, asPositive } from "./checks.js";
import { enoughNoise, reach } from "./obfuscate.js";
import { SamePlace } from "./same_place.js";

const [ZONE_CONFIDENCE, ZONE_CELL, LIMIT_RADII, TEST_RADII] = [0.99, 200, 3, 10]; // as in geoind.traces.zones

/** A disk around a noisy home, in which a session answers with the centre. Centre and radius may be public. */
export class PrivateZone {
  /** @param {{ lat: number, lon: number, radius: number }} options the centre, and metres */
  constructor({ lat, lon, radius }) {
    const [longitude, latitude] = asLonLat(lat, lon);
    this.lon = longitude;
    this.lat = latitude;
    this.radius = asPositive(radius, "radius");
    Object.freeze(this);
  }

  /** A zone around a home; costs epsilon, once: the centre is a report of the cell of 200 m in which the home lies.
   * @param {object} options
   * @param {number} options.lat of the home
   * @param {number} options.lon
   * @param {number} [options.epsilon] of the centre, per metre, or level and radius
   * @param {number} [options.level]
   * @param {number} [options.radius]
   * @param {Uint8Array | string} options.key 32 secret bytes: the same home gets the same zone again, free of charge
   * @param {number} [options.margin] metres by which the zone's radius exceeds the noise of the centre
   * @param {string | number} [options.person] who pays
   * @param {import("./budget.js").Budget} [options.budget]
   */
  static around({ lat, lon, epsilon, level, radius, key, margin = 200, person = "home", budget }) {
    const cost = enoughNoise(asEpsilon({ epsilon, level, radius }));
    // In whole metres: logarithms differ between machines in the last bit, and keyed sessions must not.
    const disk = Math.ceil(reach(cost, ZONE_CONFIDENCE) + asPositive(margin, "margin"));
    return new PrivateZone({
      ...new SamePlace(key, { cell: ZONE_CELL }).obfuscate({ lat, lon, person, epsilon: cost, budget }),
      radius: disk,
    });
  }

  /** How far from the centre the person may go, in metres, before noise. */
  get limit() {
    return LIMIT_RADII * this.radius;
  }

  /** Epsilon of all tests until the session leaves the zone, per metre. */
  get test() {
    return TEST_RADII / this.radius;
  }
}
