// The options: new sites, levels, fixed place, private zone, budgets, and what is stored.

import { CLOSES } from "./browser.js";
import { dialOf } from "./dial.js";
import { many, metres } from "./geoind.js";
import { budgetOf, CHOICES, LEVELS, load } from "./store.js";
import { moves, share } from "./words.js";

const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const NAMES = {
  ask: "Ask me first",
  off: "Nothing",
  low: "A report, privacy low",
  medium: "A report, privacy medium",
  high: "A report, privacy high",
  fixed: "The fixed place",
};

/**
 * Ask the background script for a change, and say what came of it.
 * @param {Record<string, any>} message
 * @param {string} said
 */
async function command(message, said) {
  const { problem } = await chrome.runtime.sendMessage(message);
  $("problem").hidden = !problem;
  $("problem").textContent = problem ?? "";
  $("said").textContent = problem ? "" : said;
  await show();
}

/** @param {Partial<import("./store.js").Settings>} changed */
const change = async (changed) =>
  command({ kind: "settings", settings: { ...(await load()).settings, ...changed } }, "Saved.");

/** @param {import("./store.js").Settings} settings */
function fillNewSites({ newSites }) {
  const fieldset = $("new-sites").querySelector("fieldset");
  if (fieldset.querySelector("label")) {
    fieldset.querySelector(`[value=${newSites}]`).checked = true;
    return;
  }
  for (const choice of CHOICES) {
    const label = document.createElement("label"),
      input = document.createElement("input");
    Object.assign(input, { type: "radio", name: "new-sites", value: choice, checked: choice === newSites });
    input.addEventListener("change", () => change({ newSites: choice }));
    label.className = "choice";
    label.append(input, NAMES[choice]);
    fieldset.append(label);
  }
}

/** @param {import("./store.js").Settings} settings */
function fillBudgets({ budget, radii, zone }) {
  for (const name of /** @type {const} */ (["site", "total"])) {
    const input = $(`budget-${name}`);
    const words = () => {
      const epsilon = Number((10 ** Number(input.value)).toPrecision(2));
      const text = `${many(moves(epsilon, radii.medium, zone), "move")} with privacy medium (${epsilon} per metre)`;
      $(`budget-${name}-out`).textContent = text;
      input.setAttribute("aria-valuetext", text);
      return epsilon;
    };
    input.value = Math.log10(budget[name]);
    input.oninput = words;
    input.onchange = () => change({ budget: { ...budget, [name]: words() } });
    words();
  }
}

/** @param {import("./store.js").Kept} kept */
function fillSites(kept) {
  const budget = budgetOf(kept),
    rows = Object.entries(kept.sites).sort();
  $("no-sites").hidden = rows.length > 0;
  $("sites").hidden = !rows.length;
  $("sites").tBodies[0].replaceChildren(
    ...rows.map(([origin, { choice, seen }]) => {
      const row = document.createElement("tr"),
        head = document.createElement("th"),
        button = document.createElement("button"),
        last = document.createElement("td");
      const spent = share(budget.spent(origin), kept.settings.budget.site);
      head.scope = "row";
      head.textContent = origin;
      Object.assign(button, { type: "button", textContent: "Delete" });
      button.setAttribute("aria-label", `Delete ${origin}`);
      button.addEventListener("click", () =>
        command(
          { kind: "forget", origin },
          `Deleted what was stored about ${origin}. What it cost stays in the total.`,
        ),
      );
      last.append(button);
      row.append(
        head,
        ...[choice ? NAMES[choice] : "as new sites", seen.length, spent].map((text) =>
          Object.assign(document.createElement("td"), { textContent: String(text) }),
        ),
        last,
      );
      return row;
    }),
  );
}

async function show() {
  const kept = await load(),
    { settings } = kept,
    { zone, place, radii } = settings;
  fillNewSites(settings);
  if (!$("levels").children.length) {
    $("levels").append(
      ...LEVELS.map((level) =>
        dialOf(level, radii[level], async (radius) => {
          await change({ radii: { ...(await load()).settings.radii, [level]: radius } });
        }),
      ),
    );
  }
  if (place && document.activeElement?.closest("#place") === null)
    [$("lat").value, $("lon").value] = [place.lat, place.lon];
  $("zone").textContent = zone ? `There is a zone with a radius of ${metres(zone.radius)}.` : "There is no zone.";
  $("remove-zone").hidden = !zone;
  $("make-zone").hidden = Boolean(zone);
  fillBudgets(settings);
  fillSites(kept);
}

$("place").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  change({ place: { lat: Number($("lat").value), lon: Number($("lon").value) } });
});
$("make-zone").addEventListener("click", async () => {
  const { settings } = await load();
  await command({ kind: "zone", radius: settings.radii.medium }, "The zone is made.");
});
$("remove-zone").addEventListener("click", () => change({ zone: null }));
$("delete").addEventListener("click", () => $("sure").showModal());
$("sure").addEventListener("close", async () => {
  if ($("sure").returnValue !== "yes") return;
  $("levels").replaceChildren();
  await command({ kind: "forget" }, "Everything is deleted.");
});
document.body.dataset.closes = String(CLOSES);
await show();
document.documentElement.dataset.ready = "yes";
