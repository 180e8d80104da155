// The service worker (in Firefox: the background page): decides what a site gets, pays, stores, and only then answers.

import { blockPages, draw, endPauses, isBlocked, isPaused, pauseSite } from "./browser.js";
import { accuracyOf, sessionOf } from "./method.js";
import { asSettings } from "./settings.js";
import * as store from "./store.js";

/** Seconds within which a site's last answer is repeated: by the clock, so that it reveals nothing. */
const PERIOD = 5;
/** Sites that asked in a tab, as many as are kept. */
const MOST_ASKED = 50;
const DENIED = { error: 1, message: "User denied Geolocation" };
const UNAVAILABLE = { error: 2, message: "The position is not available." };

/**
 * A function that runs one task after the other.
 * @returns {<T>(task: () => Promise<T>) => Promise<T>}
 */
function queue() {
  /** @type {Promise<any>} */
  let last = Promise.resolve();
  return (task) => {
    const done = last.then(task);
    last = done.catch(() => undefined);
    return done;
  };
}

/** Short changes of what is stored. They never wait for the device. */
const inTurn = queue();
/** Draws, which may wait for the device. Sessions and budgets have one writer. */
const inDraw = queue();

/** When a draw for a site failed. @type {Map<string, number>} */
const failures = new Map();

/** @param {store.Seen} seen */
const asAnswer = ({ lat, lon, accuracy, time }) => ({
  latitude: lat,
  longitude: lon,
  accuracy,
  timestamp: Math.round(1000 * time),
});

/**
 * What a site gets without a draw; null if a report has to be drawn.
 * @param {string} origin
 * @param {store.Kept} kept
 * @param {number} now
 */
function atOnce(origin, kept, now) {
  const { settings } = kept,
    { last } = store.siteOf(kept, origin),
    choice = store.choiceOf(kept, origin);
  if (choice === "ask") return { pending: true };
  if (choice === "off") return DENIED;
  if (choice === "fixed") {
    if (!settings.place) return UNAVAILABLE;
    return asAnswer({ ...settings.place, accuracy: accuracyOf(settings.radii.medium), time: now });
  }
  // Also after a clock was set back: a session's times increase.
  if (last && now < last.time + PERIOD) return asAnswer(last);
  return Math.abs(now - (failures.get(origin) ?? -Infinity)) < PERIOD ? UNAVAILABLE : null;
}

/**
 * What a site gets for the position.
 * @param {string} origin
 * @param {chrome.runtime.MessageSender} sender
 */
async function position(origin, sender) {
  const answer = await inTurn(async () => {
    if (!isBlocked()) return DENIED;
    if (await isPaused(origin)) return { paused: true };
    const found = atOnce(origin, await store.load(), Date.now() / 1000);
    await noteAsked(origin, sender, found !== null && "pending" in found);
    return found;
  });
  return answer ?? inDraw(() => step(origin));
}

/**
 * One step of a site's session. Nothing is asked about the position unless both budgets pay for the most expensive step.
 * @param {string} origin
 */
async function step(origin) {
  const time = Date.now() / 1000,
    kept = await store.load(),
    { settings, key, account } = kept,
    { budget, zone } = settings;
  // The draws before this one may have been for the same site.
  const answer = atOnce(origin, kept, time);
  if (answer) return answer;
  const radius = settings.radii[/** @type {store.Level} */ (store.choiceOf(kept, origin))];
  const most = sessionOf(radius, zone, { key, person: origin }).maxCharges.reduce((sum, charge) => sum + charge);
  if (store.budgetOf(kept).remaining(origin) < most) return UNAVAILABLE;
  const drawn = await draw({ origin, radius, time, key, account, budget, zone });
  if ("error" in drawn) {
    failures.set(origin, time);
    return UNAVAILABLE;
  }
  return inTurn(async () => {
    const now = await store.load(),
      same = store.choiceOf(now, origin) === store.choiceOf(kept, origin) && now.account === account;
    // A command came during the draw: the report is dropped, and the page asks again.
    if (!same || JSON.stringify(now.settings) !== JSON.stringify(settings)) return { pending: true };
    const site = store.withSeen(store.siteOf(now, origin), { ...drawn, accuracy: accuracyOf(radius), time }, zone);
    // Handed to the browser's storage before it is answered. A power cut can still lose it.
    await store.save({ key, month: kept.month, account: drawn.account, sites: { ...now.sites, [origin]: site } });
    return asAnswer(/** @type {store.Seen} */ (site.last));
  });
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
    await chrome.storage.session.set({ [name]: { top, asked: [...asked, origin].slice(-MOST_ASKED) } });
    // Not every browser and window lets an extension open its popup: the sign on its icon stays.
    if (undecided && sender.tab?.active) chrome.action.openPopup?.().catch(() => undefined);
  }
  // Without a text of its own, a tab has that of all tabs.
  await chrome.action.setBadgeText({ tabId, text: /** @type {any} */ (undecided ? "?" : null) });
}

/** @param {string} origin */
async function permission(origin) {
  if (!isBlocked()) return DENIED;
  if (await isPaused(origin)) return { paused: true };
  const choice = store.choiceOf(await store.load(), origin);
  return { state: choice === "ask" ? "prompt" : choice === "off" ? "denied" : "granted" };
}

/**
 * Make the private zone around the present position. Its centre is a report, which is paid for.
 * @param {number} radius metres within which the centre changes the odds by FACTOR at most
 */
async function makeZone(radius) {
  const { settings, key, month, account } = await store.load();
  const drawn = await draw({ origin: null, radius, time: 0, key, account, budget: settings.budget, zone: null });
  if ("error" in drawn) throw new Error("The position is not available, or the budget does not pay for it.");
  const { lat, lon, radius: disk } = drawn,
    zone = { lat, lon, radius: disk };
  await inTurn(async () => {
    const now = await store.load();
    if (now.account !== account) throw new Error("What is stored changed during the draw. Please try again.");
    await store.save({ key, month, account: drawn.account, settings: asSettings({ ...now.settings, zone }) });
  });
}

/** What the popup and the options page may ask for. @type {Record<string, (message: any) => Promise<any>>} */
const COMMANDS = {
  choose: async ({ origin, choice }) => {
    if (!(choice === null || store.CHOICES.includes(choice))) throw new RangeError("unknown choice");
    const kept = await store.load();
    await store.save({ sites: { ...kept.sites, [origin]: { ...store.siteOf(kept, origin), choice } } });
  },
  pause: ({ origin, pause }) => pauseSite(origin, pause === true),
  settings: async ({ settings }) => {
    const { settings: before } = await store.load(),
      [radii, budget] = [
        { ...before.radii, ...settings.radii },
        { ...before.budget, ...settings.budget },
      ];
    await store.save({ settings: asSettings({ ...before, ...settings, radii, budget }) });
  },
  zone: ({ radius }) => makeZone(radius),
  forget: async ({ origin }) => {
    if (origin !== undefined) return store.forgetSite(origin);
    // First the pauses end: their sites must not stay allowed without a record of it.
    await endPauses();
    failures.clear();
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
    const run = async () => ({ done: await COMMANDS[message.kind](message) });
    return message.kind === "zone" ? inDraw(run) : inTurn(run);
  }
  const origin = siteOf(sender);
  if (origin === null) return Promise.resolve(DENIED);
  return message.kind === "position" ? position(origin, sender) : inTurn(() => permission(origin));
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
// If it fails, pages get an error, and the icon shows it.
inTurn(blockPages).catch(() => undefined);
// Content scripts, and a renderer that was taken over, cannot read sessions and keys.
inTurn(async () => chrome.storage.local.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" }));
