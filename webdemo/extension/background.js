// The service worker (in Firefox: the background page): decides what a site gets, pays, stores, and only then answers.

import { blockPages, draw, endPauses, isPaused, pauseSite } from "./browser.js";
import { accuracyOf, sessionOf } from "./method.js";
import { asSettings } from "./settings.js";
import * as store from "./store.js";

/** Seconds within which a site's last answer is repeated: by the clock, so that it reveals nothing. */
const PERIOD = 5;
const DENIED = { error: 1, message: "User denied Geolocation" };
const UNAVAILABLE = { error: 2, message: "The position is not available." };

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
const asAnswer = ({ lat, lon, accuracy, time }) => ({
  latitude: lat,
  longitude: lon,
  accuracy,
  timestamp: Math.round(1000 * time),
});

/**
 * What a site gets for the position.
 * @param {string} origin
 * @param {chrome.runtime.MessageSender} sender
 */
async function position(origin, sender) {
  if (await isPaused(origin)) return { paused: true };
  const kept = await store.load(),
    { settings } = kept,
    site = store.siteOf(kept, origin);
  const choice = site.choice ?? settings.newSites;
  await noteAsked(origin, sender, choice === "ask");
  if (choice === "ask") return { pending: true };
  if (choice === "off") return DENIED;
  const now = Date.now() / 1000;
  if (choice === "fixed") {
    if (!settings.place) return UNAVAILABLE;
    return asAnswer({ ...settings.place, accuracy: accuracyOf(settings.radii.medium), time: now });
  }
  // Also after a clock was set back: a session's times increase.
  if (site.last && now < site.last.time + PERIOD) return asAnswer(site.last);
  return step(origin, settings.radii[choice], now, kept);
}

/**
 * One step of a site's session. Nothing is asked about the position unless both budgets pay for the dearest step.
 * @param {string} origin
 * @param {number} radius
 * @param {number} time
 * @param {store.Kept} kept
 */
async function step(origin, radius, time, kept) {
  const { settings, sites, key, month, account } = kept,
    { budget, zone } = settings;
  const dearest = sessionOf(radius, zone, { key, person: origin }).maxCharges.reduce((sum, charge) => sum + charge);
  if (store.budgetOf(kept).remaining(origin) < dearest) return UNAVAILABLE;
  const drawn = await draw({ origin, radius, time, key, account, budget, zone });
  if ("error" in drawn) return { ...UNAVAILABLE, error: drawn.error };
  const last = { lat: drawn.lat, lon: drawn.lon, accuracy: accuracyOf(radius), time };
  const site = store.withSeen(store.siteOf(kept, origin), last);
  // Stored before it is answered: what a site saw is always paid for.
  await store.save({ key, month, account: drawn.account, sites: { ...sites, [origin]: site } });
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
  const name = `tab ${tabId}`,
    top = sender.tab?.url ? new URL(sender.tab.url).origin : "";
  const { [name]: kept } = /** @type {Record<string, store.Asked>} */ (await chrome.storage.session.get(name));
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
  const kept = await store.load(),
    choice = store.siteOf(kept, origin).choice ?? kept.settings.newSites;
  return { state: choice === "ask" ? "prompt" : choice === "off" ? "denied" : "granted" };
}

/**
 * Make the private zone around the present position. Its centre is a report, which is paid for.
 * @param {number} radius metres within which the centre changes the odds by FACTOR at most
 */
async function makeZone(radius) {
  const kept = await store.load(),
    { settings, key, month, account } = kept;
  const drawn = await draw({ origin: null, radius, time: 0, key, account, budget: settings.budget, zone: null });
  if ("error" in drawn) throw new Error("The position is not available, or the budget does not pay for it.");
  const { lat, lon, radius: disk } = drawn,
    zone = { lat, lon, radius: disk };
  await store.save({ key, month, account: drawn.account, settings: asSettings({ ...settings, zone }) });
}

/** What the popup and the options page may ask for. @type {Record<string, (message: any) => Promise<any>>} */
const COMMANDS = {
  choose: async ({ origin, choice }) => {
    if (!(choice === null || store.CHOICES.includes(choice))) throw new RangeError("unknown choice");
    const kept = await store.load();
    await store.save({ sites: { ...kept.sites, [origin]: { ...store.siteOf(kept, origin), choice } } });
  },
  pause: ({ origin, pause }) => pauseSite(origin, pause === true),
  settings: ({ settings }) => store.save({ settings: asSettings(settings) }),
  zone: ({ radius }) => makeZone(radius),
  forget: async ({ origin }) => {
    if (origin !== undefined) return store.forgetSite(origin);
    // First the pauses end: their sites must not stay allowed without a record of it.
    await endPauses();
    await chrome.storage.local.clear();
    return chrome.storage.session.clear();
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
