// The service worker (in Firefox: the background page): decides what a site gets, pays, stores, and only then answers.

import { blockPages, draw, isPaused, pauseSite } from "./browser.js";
import { accuracyOf, dearestStep, methodOf } from "./method.js";
import { asSettings } from "./settings.js";
import * as store from "./store.js";

/** Seconds within which a site's last answer is repeated: by the clock, so that it reveals nothing. */
const PERIOD = 5;
const DENIED = { error: 1, message: "User denied Geolocation" };
const UNAVAILABLE = { error: 2, message: "The position is not available." };
const STATES = { ask: "prompt", off: "denied" };

/** @type {Promise<any>} */
let queue = Promise.resolve();

/**
 * Run one change after the other: sessions and budgets have one writer.
 * @template T
 * @param {() => Promise<T>} change
 * @returns {Promise<T>}
 */
function inTurn(change) {
  const done = queue.then(change);
  queue = done.catch(() => undefined);
  return done;
}

/** @param {store.Seen} seen */
const asAnswer = ({ lat, lon, accuracy, time }) => ({ latitude: lat, longitude: lon, accuracy, timestamp: Math.round(1000 * time) });

/**
 * What a site gets for the position.
 * @param {string} origin
 * @param {chrome.runtime.MessageSender} sender
 */
async function position(origin, sender) {
  if (await isPaused(origin)) return { paused: true };
  const chosen = await store.settings();
  const site = (await store.site(origin)) ?? store.newSite();
  const choice = site.choice ?? chosen.newSites;
  await noteAsked(origin, sender, choice === "ask");
  if (choice === "ask") return { pending: true };
  if (choice === "off") return DENIED;
  const now = Date.now() / 1000;
  if (choice === "fixed") {
    if (!chosen.place) return UNAVAILABLE;
    return asAnswer({ ...chosen.place, accuracy: accuracyOf(chosen.radii.medium), time: now });
  }
  if (site.last && Math.abs(now - site.last.time) < PERIOD) return asAnswer(site.last);
  // A session's times increase, also after a clock was set back.
  return step(origin, site, choice, chosen, Math.max(now, site.last ? site.last.time + PERIOD : now));
}

/**
 * One step of a site's session. Nothing is asked about the position unless both budgets pay for the dearest step.
 * @param {string} origin
 * @param {store.Site} site
 * @param {"low" | "medium" | "high"} level
 * @param {store.Settings} chosen
 * @param {number} time
 */
async function step(origin, site, level, chosen, time) {
  const paid = await store.payments(time);
  const method = methodOf(chosen.radii[level]), most = dearestStep(method, chosen.zone);
  const enough = store.spent(paid, origin) + most <= chosen.budget.site && store.spent(paid) + most <= chosen.budget.total;
  if (!enough) return UNAVAILABLE;
  const drawn = await draw({ session: site.session, key: site.key, method, zone: chosen.zone, time });
  if (drawn.error) return { ...UNAVAILABLE, error: drawn.error };
  const last = { lat: drawn.lat, lon: drawn.lon, accuracy: accuracyOf(chosen.radii[level]), time };
  const before = site.seen.at(-1), moved = !before || before.lat !== last.lat || before.lon !== last.lon;
  const seen = moved ? [...site.seen, last].slice(-store.MOST_SEEN) : site.seen;
  const bill = drawn.cost ? [...paid, { time, epsilon: drawn.cost, origin }] : paid;
  await store.saveSite(origin, { ...site, session: drawn.session, last, seen }, bill);
  return asAnswer(last);
}

/**
 * Remember which sites asked in a tab, for the popup; call for a choice if there is none.
 * @param {string} origin
 * @param {chrome.runtime.MessageSender} sender
 * @param {boolean} undecided
 */
async function noteAsked(origin, sender, undecided) {
  const tabId = sender.tab?.id;
  if (tabId === undefined) return;
  const name = `tab ${tabId}`, top = sender.tab?.url ? new URL(sender.tab.url).origin : "";
  const { [name]: kept } = await chrome.storage.session.get(name);
  const asked = kept?.top === top ? kept.asked : [];
  if (!asked.includes(origin)) {
    await chrome.storage.session.set({ [name]: { top, asked: [...asked, origin] } });
    // Not every browser and window lets an extension open its popup: the sign on its icon stays.
    if (undecided) chrome.action.openPopup?.().catch(() => undefined);
  }
  await chrome.action.setBadgeText({ tabId, text: undecided ? "?" : "" });
}

/** @param {string} origin */
async function permission(origin) {
  if (await isPaused(origin)) return { paused: true };
  const choice = (await store.site(origin))?.choice ?? (await store.settings()).newSites;
  return { state: choice in STATES ? STATES[/** @type {"ask" | "off"} */ (choice)] : "granted" };
}

/**
 * Make the private zone around the present position; its centre is a report, which is paid for.
 * @param {number} radius metres within which the centre changes the odds by FACTOR at most
 */
async function makeZone(radius) {
  const chosen = asSettings(await store.settings()), time = Date.now() / 1000, paid = await store.payments(time);
  const epsilon = methodOf(radius).fresh;
  if (store.spent(paid) + epsilon > chosen.budget.total) throw new RangeError("The budget of all sites does not pay for a zone.");
  const drawn = await draw({ zone: epsilon, key: await store.zoneKey() });
  if (drawn.error) throw new Error("The position is not available.");
  await store.saveZone({ lat: drawn.lat, lon: drawn.lon, radius: drawn.radius }, [...paid, { time, epsilon, origin: "" }]);
}

/** What the popup and the options page may ask for. @type {Record<string, (message: any) => Promise<any>>} */
const COMMANDS = {
  choose: async ({ origin, choice }) => {
    if (!(choice === null || store.CHOICES.includes(choice))) throw new RangeError("unknown choice");
    await store.saveSite(origin, { ...((await store.site(origin)) ?? store.newSite()), choice });
  },
  pause: ({ origin, pause }) => pauseSite(origin, pause === true),
  settings: async ({ settings }) => store.saveSettings(asSettings(settings)),
  zone: ({ radius }) => makeZone(radius),
  forget: async ({ origin }) => {
    if (origin !== undefined) return store.forgetSite(origin);
    await chrome.storage.local.clear();
    await chrome.storage.session.clear();
    return blockPages();
  },
};

/**
 * An http or https origin, or null: a frame without an origin of its own, such as a sandboxed one, gets an error.
 * @param {chrome.runtime.MessageSender} sender
 */
function siteOf(sender) {
  const stated = /** @type {string | undefined} */ (sender.origin);
  return stated && /^https?:\/\/[^/]+$/.test(stated) ? stated : null;
}

/**
 * @param {any} message
 * @param {chrome.runtime.MessageSender} sender
 */
function answer(message, sender) {
  if (sender.origin === location.origin) {
    return inTurn(async () => ({ done: await COMMANDS[message.kind](message) }));
  }
  const origin = siteOf(sender);
  if (origin === null) return Promise.resolve(DENIED);
  return message.kind === "position" ? inTurn(() => position(origin, sender)) : permission(origin);
}

chrome.runtime.onMessage.addListener((message, sender, reply) => {
  const command = sender.origin === location.origin;
  const known = command ? Object.hasOwn(COMMANDS, message?.kind) : ["position", "permission"].includes(message?.kind);
  if (sender.id !== chrome.runtime.id || !known) return false;
  answer(message, sender).then(reply, (error) => reply(command ? { problem: error.message } : UNAVAILABLE));
  return true;
});
chrome.runtime.onInstalled.addListener(({ reason }) => {
  if (reason === "install") chrome.runtime.openOptionsPage();
});
// Runs at every start of this script; the event makes the browser start it.
chrome.runtime.onStartup.addListener(() => undefined);
chrome.tabs.onRemoved.addListener((tabId) => chrome.storage.session.remove(`tab ${tabId}`));
inTurn(async () => {
  // Content scripts, and a renderer that was taken over, cannot read sessions and keys.
  await chrome.storage.local.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" });
  await blockPages();
});
