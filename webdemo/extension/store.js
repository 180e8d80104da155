// What the extension keeps: settings, and for each site its choice, its session and what it saw. The background script
// is the only writer; the popup and the options page read.

/**
 * @typedef {"ask" | "off" | "low" | "medium" | "high" | "fixed"} Choice
 * @typedef {{lat: number, lon: number}} Place
 * @typedef {{lat: number, lon: number, radius: number}} Zone
 * @typedef {object} Settings
 * @property {Choice} newSites what a site gets that has no choice of its own
 * @property {Record<"low" | "medium" | "high", number>} radii metres within which a report changes the odds by FACTOR at most
 * @property {Place | null} place the fixed place
 * @property {Zone | null} zone the private zone
 * @property {{site: number, total: number}} budget epsilon per metre in DAYS days
 * @typedef {object} Seen
 * @property {number} time seconds since 1970
 * @property {number} lat
 * @property {number} lon
 * @property {number} accuracy
 * @typedef {object} Site
 * @property {Choice | null} choice
 * @property {string} key of the session, in hexadecimal
 * @property {string | null} session state of the session, as JSON
 * @property {Seen[]} seen the last different places that the site saw
 * @property {Seen | null} last
 * @typedef {{time: number, epsilon: number, origin: string}} Payment
 */

export const FACTOR = 4;
export const DAYS = 30;
/** Places of a site that are kept for its map. */
export const MOST_SEEN = 60;
/** @type {readonly Choice[]} */
export const CHOICES = ["ask", "off", "low", "medium", "high", "fixed"];
/** @type {readonly ("low" | "medium" | "high")[]} */
export const LEVELS = ["low", "medium", "high"];

/** @type {Settings} */
export const DEFAULTS = {
  newSites: "ask",
  radii: { low: 200, medium: 500, high: 2000 },
  place: null,
  zone: null,
  budget: { site: 0.1, total: 0.2 },
};

/** @param {string} origin */
const nameOf = (origin) => `site ${origin}`;

/** @returns {Promise<Settings>} */
export async function settings() {
  const { settings: kept } = await chrome.storage.local.get("settings");
  return { ...DEFAULTS, ...kept };
}

/** @param {Settings} changed */
export const saveSettings = (changed) => chrome.storage.local.set({ settings: changed });

/** A secret of 32 bytes, in hexadecimal. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @returns {Site} */
export const newSite = () => ({ choice: null, key: newKey(), session: null, seen: [], last: null });

/**
 * @param {string} origin
 * @returns {Promise<Site | undefined>}
 */
export async function site(origin) {
  return (await chrome.storage.local.get(nameOf(origin)))[nameOf(origin)];
}

/** @returns {Promise<Map<string, Site>>} */
export async function sites() {
  const all = Object.entries(await chrome.storage.local.get(null));
  return new Map(all.filter(([name]) => name.startsWith("site ")).map(([name, kept]) => [name.slice(5), kept]));
}

/**
 * What was paid in the last DAYS days.
 * @param {number} time seconds since 1970
 * @returns {Promise<Payment[]>}
 */
export async function payments(time) {
  const { payments: kept = [] } = await chrome.storage.local.get("payments");
  return kept.filter((/** @type {Payment} */ one) => one.time > time - DAYS * 86400);
}

/**
 * Epsilon of payments, of one site or of all.
 * @param {Payment[]} paid
 * @param {string} [origin]
 */
export function spent(paid, origin) {
  return paid.reduce((sum, one) => sum + (origin === undefined || one.origin === origin ? one.epsilon : 0), 0);
}

/**
 * Store a site, with what a step has cost, in one write.
 * @param {string} origin
 * @param {Site} record
 * @param {Payment[]} [paid]
 */
export function saveSite(origin, record, paid) {
  return chrome.storage.local.set({ [nameOf(origin)]: record, ...(paid && { payments: paid }) });
}

/**
 * Delete what is known about a site. What it cost stays in the total: the site still has its reports.
 * @param {string} origin
 */
export async function forgetSite(origin) {
  const { payments: kept = [] } = await chrome.storage.local.get("payments");
  const unnamed = kept.map((/** @type {Payment} */ one) => (one.origin === origin ? { ...one, origin: "" } : one));
  await chrome.storage.local.set({ payments: unnamed });
  await chrome.storage.local.remove(nameOf(origin));
}

/** The key of private zones: the same home has the same centre again. */
export async function zoneKey() {
  const { zoneKey: kept } = await chrome.storage.local.get("zoneKey");
  if (kept) return kept;
  const key = newKey();
  await chrome.storage.local.set({ zoneKey: key });
  return key;
}

/**
 * @param {Zone} zone
 * @param {Payment[]} paid
 */
export async function saveZone(zone, paid) {
  await chrome.storage.local.set({ settings: { ...(await settings()), zone }, payments: paid });
}
