// What the extension keeps. The background script is the only writer; the popup and the options page read.

import { Budget } from "./geoind.js";

/**
 * @typedef {"ask" | "off" | "low" | "medium" | "high" | "fixed"} Choice
 * @typedef {"low" | "medium" | "high"} Level
 * @typedef {{lat: number, lon: number}} Place
 * @typedef {{lat: number, lon: number, radius: number}} Zone
 * @typedef {object} Settings
 * @property {Choice} newSites what a site gets that has no choice of its own
 * @property {Record<Level, number>} radii metres within which a report changes the odds by FACTOR at most
 * @property {Place | null} place the fixed place
 * @property {Zone | null} zone the private zone
 * @property {{site: number, total: number}} budget epsilon per metre in a month
 * @typedef {object} Seen what a site saw
 * @property {number} time seconds since 1970
 * @property {number} lat
 * @property {number} lon
 * @property {number} accuracy
 * @typedef {object} Site
 * @property {Choice | null} choice
 * @property {Seen[]} seen the last different places
 * @property {Seen | null} last
 * @typedef {{top: string, asked: string[]}} Asked the sites that asked in a tab, while it showed this one
 * @typedef {object} Kept
 * @property {Settings} settings
 * @property {Record<string, Site>} sites by origin
 * @property {string} key of all sessions and zones, in hexadecimal
 * @property {string} month of the account
 * @property {string | null} account sessions and payments, as `Budget` stores them
 */

export const FACTOR = 4;
/** Places of a site that are kept for its map. */
const MOST_SEEN = 60;
/** @type {readonly Choice[]} */
export const CHOICES = ["ask", "off", "low", "medium", "high", "fixed"];
/** @type {readonly Level[]} */
export const LEVELS = ["low", "medium", "high"];
/** Who has paid for the zone, and for sites that were deleted. */
export const ZONE = "private zone",
  DELETED = "deleted sites";

/** @type {Settings} */
export const DEFAULTS = {
  newSites: "ask",
  radii: { low: 200, medium: 500, high: 2000 },
  place: null,
  zone: null,
  budget: { site: 0.1, total: 0.2 },
};

const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const thisMonth = () => new Date().toISOString().slice(0, 7);

/** @returns {Promise<Kept>} */
export async function load() {
  const {
    settings,
    sites = {},
    key = newKey(),
    month = thisMonth(),
    account = null,
  } = /** @type {Partial<Kept>} */ (await chrome.storage.local.get(null));
  const kept = { settings: { ...DEFAULTS, ...settings }, sites, key, month, account };
  return month < thisMonth() ? { ...kept, month: thisMonth(), account: unpaid(account) } : kept;
}

/** @param {Partial<Kept>} changed */
export const save = (changed) => chrome.storage.local.set(changed);

/**
 * A storage for `Budget` that holds one account.
 * @param {string | null} account
 */
export function holding(account) {
  return {
    account,
    getItem() {
      return this.account;
    },
    setItem(/** @type {string} */ _, /** @type {string} */ text) {
      this.account = text;
    },
  };
}

/** @param {Pick<Kept, "settings" | "account">} kept */
export const budgetOf = ({ settings: { budget }, account }) =>
  new Budget(holding(account), { epsilon: budget.site, total: budget.total });

/**
 * A new month: the sessions continue, and nothing is spent yet.
 * @param {string | null} account
 */
const unpaid = (account) => account && JSON.stringify({ ...JSON.parse(account), spent: {} });

/**
 * The account without the session of a site. What it cost stays in the total: the site still has its reports.
 * @param {string | null} account
 * @param {string} origin
 */
function withoutSite(account, origin) {
  if (!account) return account;
  const { spent, paid, sessions } = JSON.parse(account);
  const { [origin]: cost = 0, [DELETED]: earlier = 0, ...others } = spent;
  const left = Object.entries(sessions).filter(([name]) => !name.endsWith(` ${origin}`));
  return JSON.stringify({ spent: { ...others, [DELETED]: earlier + cost }, paid, sessions: Object.fromEntries(left) });
}

/**
 * @param {Kept} kept
 * @param {string} origin
 * @returns {Site}
 */
export const siteOf = ({ sites }, origin) =>
  Object.hasOwn(sites, origin) ? sites[origin] : { choice: null, seen: [], last: null };

/**
 * A site that saw one place more.
 * @param {Site} site
 * @param {Seen} last
 * @returns {Site}
 */
export function withSeen(site, last) {
  const before = site.seen.at(-1),
    same = before && before.lat === last.lat && before.lon === last.lon;
  return { ...site, last, seen: same ? site.seen : [...site.seen, last].slice(-MOST_SEEN) };
}

/** @param {string} origin */
export async function forgetSite(origin) {
  const kept = await load();
  const sites = Object.fromEntries(Object.entries(kept.sites).filter(([name]) => name !== origin));
  await save({ ...kept, sites, account: withoutSite(kept.account, origin) });
}
