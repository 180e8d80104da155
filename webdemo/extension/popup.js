// The popup: what the site of the tab gets, what it saw, and what that cost.

import { CLOSES, isClosed, isPaused } from "./browser.js";
import { many, metres } from "./geoind.js";
import { mapOf } from "./map.js";
import { budgetOf, LEVELS, load, siteOf } from "./store.js";
import { moves, share, short } from "./words.js";

const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

/** @param {Record<string, any>} message */
const command = (message) => chrome.runtime.sendMessage(message);

/** The sites of the tab: that of the page, and those that asked. @returns {Promise<string[]>} */
async function sitesOfTab() {
  const given = new URLSearchParams(location.search).get("tab");
  const [tab] = given
    ? [await chrome.tabs.get(Number(given))]
    : await chrome.tabs.query({ active: true, currentWindow: true });
  /** @type {Record<string, import("./store.js").Asked>} */
  const { [`tab ${tab?.id}`]: noted } = await chrome.storage.session.get(`tab ${tab?.id}`);
  const page = /^https?:/.test(tab?.url ?? "") ? [new URL(/** @type {string} */ (tab.url)).origin] : [];
  const here = !page.length || noted?.top === page[0] ? (noted?.asked ?? []) : [];
  return [...new Set([...here, ...page])];
}

/**
 * @param {import("./store.js").Kept} kept
 * @returns {[string, string, string][]}
 */
const choicesOf = ({ settings }) => [
  ["off", "Nothing", "the site gets an error"],
  ...LEVELS.map(
    (level) =>
      /** @type {[string, string, string]} */ ([level, `A report, privacy ${level}`, short(settings.radii[level])]),
  ),
  ["fixed", "A fixed place", settings.place ? "the place of the options" : "set one in the options first"],
];

/**
 * @param {string} origin
 * @param {import("./store.js").Kept} kept
 */
function fillChoices(origin, kept) {
  const fieldset = $("choices").querySelector("fieldset"),
    chosen = siteOf(kept, origin).choice ?? kept.settings.newSites;
  for (const label of fieldset.querySelectorAll("label")) label.remove();
  for (const [choice, name, meaning] of choicesOf(kept)) {
    const label = document.createElement("label"),
      input = document.createElement("input"),
      text = document.createElement("span");
    const note = document.createElement("span");
    Object.assign(input, {
      type: "radio",
      name: "choice",
      value: choice,
      checked: choice === chosen,
      disabled: choice === "fixed" && !kept.settings.place,
    });
    input.addEventListener("change", async () => {
      await command({ kind: "choose", origin, choice });
      await show(origin);
    });
    note.textContent = ` ${meaning}`;
    text.append(name, note);
    label.className = "choice";
    label.append(input, text);
    fieldset.append(label);
  }
}

/**
 * @param {import("./store.js").Site} site
 * @param {import("./store.js").Settings} settings
 * @param {number} left of the budget
 */
function statusOf({ choice, seen, last }, { newSites, radii, zone }, left) {
  const level = LEVELS.find((one) => one === (choice ?? newSites));
  if ((choice ?? newSites) === "ask")
    return "This site has no level yet. If it asks for your location, it waits for your choice.";
  if (level && moves(left, radii[level], zone) < 1)
    return "The budget of this month does not pay for another report: this site gets an error.";
  if (!last) return "This site has seen nothing of your location.";
  return `This site saw ${many(seen.length, "place")}. A fresh report is within ${metres(last.accuracy)} of you with a probability of 95 %.`;
}

/** @param {string} origin */
async function show(origin) {
  const kept = await load(),
    site = siteOf(kept, origin),
    { settings } = kept,
    budget = budgetOf(kept),
    paused = await isPaused(origin);
  $("title").textContent = origin;
  $("about").hidden = false;
  $("open").hidden = !CLOSES || paused || (await isClosed(origin));
  $("status").textContent = paused ? "" : statusOf(site, settings, budget.remaining(origin));
  $("choices").hidden = paused;
  fillChoices(origin, kept);
  $("saw").hidden = !site.seen.length;
  if (site.seen.length) $("map").replaceChildren(mapOf(site.seen));
  for (const [name, spent, limit] of [
    ["site", budget.spent(origin), settings.budget.site],
    ["total", budget.totalSpent, settings.budget.total],
  ]) {
    $(`${name}-spent`).textContent = `${share(Number(spent), Number(limit))} spent`;
    $(`${name}-bar`).value = Math.min(1, Number(spent) / Number(limit));
  }
  $("pausing").hidden = paused || !CLOSES;
  $("paused").hidden = !paused;
  $("pause").onclick = async () => {
    await command({ kind: "pause", origin, pause: true });
    await show(origin);
    $("resume").focus();
  };
  $("resume").onclick = async () => {
    await command({ kind: "pause", origin, pause: false });
    await show(origin);
  };
}

const sites = await sitesOfTab();
$("firefox").hidden = CLOSES;
if (sites.length) {
  $("several").hidden = sites.length < 2;
  $("site").append(...sites.map((origin) => new Option(origin, origin)));
  $("site").addEventListener("change", () => show($("site").value));
  await show(sites[0]);
} else {
  $("status").textContent = "This page cannot ask for your location through the extension.";
}
document.documentElement.dataset.ready = "yes";
