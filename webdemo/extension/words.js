// Levels and budgets in words, for the popup and the options page.

import { metres, percent, reach } from "./geoind.js";
import { epsilonOf, sessionOf } from "./method.js";
import { FACTOR } from "./store.js";

/**
 * What a level promises: odds and metres.
 * @param {number} radius
 */
export function promise(radius) {
  const epsilon = epsilonOf(radius);
  return `Between places within ${metres(radius)} of each other, a report changes the odds by a factor of ${FACTOR} at most. Half of the reports are within ${metres(reach(epsilon, 0.5))} of you, 95 % within ${metres(reach(epsilon, 0.95))}.`;
}

/** @param {number} radius */
export const short = (radius) => `95 % of reports within ${metres(reach(epsilonOf(radius), 0.95))}`;

/**
 * How much of a budget is spent.
 * @param {number} spent
 * @param {number} budget
 */
export const share = (spent, budget) => percent(Math.min(1, spent / budget));

/**
 * How many moves to a new place a budget pays for.
 * @param {number} budget
 * @param {number} radius
 * @param {import("./store.js").Zone | null} zone
 */
export function moves(budget, radius, zone) {
  const most = sessionOf(radius, zone, { key: "00".repeat(32), person: "any" }).maxCharges.reduce(
    (sum, charge) => sum + charge,
  );
  return Math.floor((budget * (1 + 1e-9)) / most);
}
