// Settings from the options page, checked before they are stored.

import { CHOICES, LEVELS } from "./store.js";

/**
 * @param {unknown} value
 * @param {number} least
 * @param {number} most
 * @param {string} name
 */
function within(value, least, most, name) {
  if (typeof value !== "number" || !(value >= least && value <= most))
    throw new RangeError(`${name} must be between ${least} and ${most}.`);
  return value;
}

/** @param {any} place */
const asPlace = (place) => ({
  lat: within(place.lat, -90, 90, "The latitude"),
  lon: within(place.lon, -180, 180, "The longitude"),
});

/**
 * @param {any} given
 * @returns {import("./store.js").Settings}
 */
export function asSettings(given) {
  if (!CHOICES.includes(given.newSites)) throw new RangeError("unknown choice for new sites");
  const radii = Object.fromEntries(
    LEVELS.map((level) => [level, within(given.radii[level], 50, 20000, "The radius in metres")]),
  );
  return {
    newSites: given.newSites,
    radii: /** @type {import("./store.js").Settings["radii"]} */ (radii),
    place: given.place && asPlace(given.place),
    zone: given.zone && { ...asPlace(given.zone), radius: within(given.zone.radius, 1, 1e6, "The radius of the zone") },
    budget: {
      site: within(given.budget.site, 0, 10, "The budget of a site"),
      total: within(given.budget.total, 0, 10, "The budget of all sites"),
    },
  };
}
