// The shell: tabs, the privacy controls, your place, dark and light, and the view in the address.

import { map, paint, prepare, dot, circle } from "./map.js";
import { put, metres, small } from "./words.js";
import { say } from "./ask.js";
import { explore } from "./explore.js";
import { near } from "./near.js";
import { again } from "./again.js";
import { trace } from "./trace.js";
import { compare } from "./compare.js";

const parts = { explore, near, again, trace, compare };
const controls = ["factor", "radius"];
const $ = (id) => document.getElementById(id);

const bounds = prepare();
const app = {
  layer: L.layerGroup().addTo(map),
  me: bounds.getCenter(),
  bounds,
  seed: newSeed(),
  privacy: () => ({ factor: Number($("factor").value), radius: Number($("radius").value) }),
  place: () => ({ lat: app.me.lat, lon: app.me.lng }),
  newSeed: () => { app.seed = newSeed(); },
  drawMe: () => {
    circle(app.me, app.privacy().radius, "truth", { weight: 1, opacity: 0.6, fill: true, fillOpacity: 0.06 }).addTo(app.layer);
    return dot(app.me, "truth", { radius: 8 }).bindTooltip("you", { permanent: true, direction: "right", offset: [8, 0] }).addTo(app.layer);
  },
  promise: ({ promise: told }) => {
    put("promise", told.sentence);
    put("epsilon", small(told.epsilon));
    put("mean-error", metres(told.mean_error));
  },
  remember,
  restoreChoices: () => restoreControls(opened),
};
// What the address said when the page was opened: Compare's choices appear later.
const opened = new URLSearchParams(location.hash.slice(1));
let tab = "explore";

function newSeed() {
  return Number(crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n);
}

function labels() {
  const { factor, radius } = app.privacy();
  put("factor-out", `${factor} ×`);
  put("radius-out", `${radius} m`);
  put("nearby-radius", `${radius} m`);
  const epsilon = Math.log(factor) / radius;
  put("promise", `Within ${radius} m an observer can tell places apart by a factor of ${factor} at most.`);
  put("epsilon", small(epsilon));
  for (const id of controls) $(id).setAttribute("aria-valuetext", $(`${id}-out`).textContent);
}

// ---- the view in the address: everything but the true place, unless asked ----

function stateful() {
  return [...document.querySelectorAll("#panel input[id], #panel select[id], #panel input[type=radio]")].filter((control) => control.id !== "share-place");
}
const usualOption = (select) => ([...select.options].find((option) => option.defaultSelected) ?? select.options[0])?.value ?? "";
const nameOf = (control) => control.id || control.name;

function remember() {
  const state = new URLSearchParams({ tab });
  for (const control of stateful()) {
    if (control.type === "radio") {
      if (control.checked && !control.defaultChecked) state.set(control.name, control.value);
    } else if (control.type === "checkbox") {
      if (control.checked !== control.defaultChecked) state.set(control.id, control.checked ? "1" : "0");
    } else {
      const usual = control.tagName === "SELECT" ? usualOption(control) : control.defaultValue;
      if (control.value !== usual) state.set(control.id, control.value);
    }
  }
  if ($("share-place").checked) state.set("at", `${app.me.lat.toFixed(6)},${app.me.lng.toFixed(6)}`);
  history.replaceState(null, "", `#${state}`);
}

function restoreControls(state) {
  for (const control of stateful()) {
    const value = state.get(nameOf(control));
    if (value === null) continue;
    if (control.type === "radio") control.checked = control.value === value;
    else if (control.type === "checkbox") control.checked = value === "1";
    else if (control.tagName !== "SELECT" || [...control.options].some((option) => option.value === value)) control.value = value;
  }
}

function restore(state) {
  restoreControls(state);
  const at = (state.get("at") ?? "").split(",").map(Number);
  if (at.length === 2 && at.every(Number.isFinite) && bounds.pad(1).contains(at)) {
    app.me = L.latLng(at);
    $("share-place").checked = true;
  }
  if (state.get("tab") in parts) tab = state.get("tab");
}

// ---- tabs ----

function open(name) {
  parts[tab].leave?.();
  tab = name;
  app.layer.clearLayers();
  say(null);
  for (const button of document.querySelectorAll("[role=tab]")) {
    const chosen = button.dataset.tab === name;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  for (const part of document.querySelectorAll("[data-part]")) part.hidden = part.dataset.part !== name;
  const figures = name === "compare";
  $("privacy").hidden = figures;
  $("figures").hidden = !figures;
  $("mapframe").hidden = figures;
  $("panel").scrollTop = 0;
  put("hint", parts[name].hint ?? "");
  $("hint").hidden = !parts[name].hint;
  remember();
  parts[name].enter(app);
}

for (const button of document.querySelectorAll("[role=tab]")) {
  button.addEventListener("click", () => open(button.dataset.tab));
  button.addEventListener("keydown", (event) => {
    const names = Object.keys(parts), at = names.indexOf(tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(names[(to + names.length) % names.length]);
    $(`tab-${tab}`).focus();
  });
}

// ---- controls ----

for (const id of controls) $(id).addEventListener("input", () => { labels(); parts[tab].update(app, "privacy"); });
$("panel").addEventListener("change", remember);
$("privacy").addEventListener("submit", (event) => event.preventDefault());

function moveTo(at) {
  if (parts[tab].click) parts[tab].click(app, at);
  else if (tab !== "compare") { app.me = at; parts[tab].update(app, "place"); }
  remember();
}
map.on("click", (event) => moveTo(event.latlng));
map.getContainer().addEventListener("keydown", (event) => { if (event.key === "Enter") moveTo(map.getCenter()); });
map.getContainer().setAttribute("aria-label", "Map. Arrow keys move it, Enter places you at its centre.");
map.getContainer().setAttribute("role", "application");

$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("geoind-theme", theme); } catch { /* storage is off: for this visit only */ }
  paint();
  parts[tab].redraw?.(app);
});

$("share").addEventListener("click", async () => {
  remember();
  try { await navigator.clipboard.writeText(location.href); put("share", "Copied"); } catch { put("share", "Copy the address"); }
  setTimeout(() => put("share", "Copy link"), 1500);
});

restore(opened);
labels();
for (const part of Object.values(parts)) part.init?.(app);
open(tab);
document.documentElement.dataset.ready = "yes";
