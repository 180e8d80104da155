// What differs between browsers: who sees the true position, and whether pages can be kept from it.

const PAGES = ["http://*/*", "https://*/*"];

/** Whether the browser can deny its own geolocation to pages. Firefox cannot. */
export const CLOSES = Boolean(chrome.contentSettings);

/** @returns {Promise<string[]>} */
async function pausedSites() {
  const { paused = [] } = /** @type {{paused?: string[]}} */ (await chrome.storage.session.get("paused"));
  return paused;
}

/** @param {string} origin */
export const isPaused = async (origin) => (await pausedSites()).includes(origin);

/** Deny the browser's own geolocation to every page, but to the paused sites. */
export async function blockPages() {
  if (!CLOSES) return;
  const { location } = chrome.contentSettings;
  for (const primaryPattern of PAGES) await location.set({ primaryPattern, setting: "block" });
  const paused = await pausedSites();
  const { exceptions = [] } = /** @type {{exceptions?: string[]}} */ (await chrome.storage.local.get("exceptions"));
  const all = [...new Set([...exceptions, ...paused])];
  // Recorded before a site is allowed: a pause ends with the browser, also if the browser crashes.
  await chrome.storage.local.set({ exceptions: all });
  // An exception cannot be removed alone: it is overwritten.
  for (const origin of all) {
    await location.set({ primaryPattern: `${origin}/*`, setting: paused.includes(origin) ? "allow" : "block" });
  }
}

/**
 * Give a site the true position, until the pause ends or the browser does; or end it.
 * @param {string} origin
 * @param {boolean} pause
 */
export async function pauseSite(origin, pause) {
  const others = (await pausedSites()).filter((one) => one !== origin);
  await chrome.storage.session.set({ paused: pause ? [...others, origin] : others });
  await blockPages();
}

export async function endPauses() {
  await chrome.storage.session.remove("paused");
  await blockPages();
}

/**
 * Whether a page is kept from the browser's own geolocation: the policy of an organisation may allow it.
 * @param {string} origin
 */
export async function isClosed(origin) {
  if (!CLOSES) return false;
  return (await chrome.contentSettings.location.get({ primaryUrl: `${origin}/` })).setting === "block";
}

/** @type {Promise<void> | null} */
let opening = null;

async function createOffscreen() {
  const there = await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.OFFSCREEN_DOCUMENT] });
  if (there.length) return;
  await chrome.offscreen.createDocument({
    url: "offscreen.html",
    reasons: [chrome.offscreen.Reason.GEOLOCATION],
    justification: "Draws a report of the position. The true position does not leave this document.",
  });
}

/** Open the offscreen document, once. */
function openOffscreen() {
  opening ??= createOffscreen().finally(() => {
    opening = null;
  });
  return opening;
}

/**
 * Ask the only place that sees the true position.
 * @param {import("./draw.js").Question} question
 * @returns {Promise<import("./draw.js").Drawn | import("./draw.js").Failed>}
 */
export async function draw(question) {
  if (!chrome.offscreen) return (await import("./draw.js")).draw(question);
  await openOffscreen();
  return chrome.runtime.sendMessage({ to: "offscreen", question });
}
