// The shell: tabs, the privacy controls, your place, the look of the page, and the view in the address.

import * as address from "./address.js";
import { again } from "./again.js";
import { say } from "./ask.js";
import { prepareCode, showCode } from "./code.js";
import { compare } from "./compare.js";
import { follow, prepareDial, privacy } from "./dial.js";
import { explore } from "./explore.js";
import { circle, map, paint, prepare } from "./map.js";
import { near } from "./near.js";
import { download, takeFigures, takePicture } from "./picture.js";
import { makePin } from "./pin.js";
import { buildings } from "./town.js";
import { trace } from "./trace.js";
import { metres, put, small } from "./words.js";

// A part has `enter`, `leave`, `update(app, why)`, `redraw`; `figures` instead of the map; `click` takes the map's
// clicks, and without it they place you; `remember` and `restore` keep places of its own in the link.
const parts = { explore, near, again, trace, compare };
const $ = (id) => document.getElementById(id);

const SETTLED = 700;

const HOME = L.latLng(document.body.dataset.home.split(",").map(Number));
const bounds = prepare();
const app = {
  layer: L.layerGroup().addTo(map),
  bounds,
  me: HOME,
  seed: newSeed(),
  privacy,
  say,
  place: () => ({ lat: app.me.lat, lon: app.me.lng }),
  newSeed: () => {
    app.seed = newSeed();
    remember();
  },
  drawMe: () =>
    circle(app.me, app.privacy().radius, "truth", { weight: 1, opacity: 0.6, fill: true, fillOpacity: 0.06 }).addTo(
      app.layer,
    ),
  moveMe,
  asInLink,
  // Somewhere in a building, not at the map's edge.
  anotherPlace: async () => {
    const inner = bounds.pad(-0.15),
      all = (await buildings()).map((building) => L.latLng(building.inside));
    const here = all.filter((at) => inner.contains(at)),
      choices = here.length ? here : all;
    moveMe(choices[Math.floor(Math.random() * choices.length)]);
  },
  // A place that the server accepted is restored when it refuses the next one.
  accepted: ({ lat, lon }) => {
    lastGood = L.latLng(lat, lon);
  },
  refused: ({ lat, lon }) => {
    if (app.me.lat === lat && app.me.lng === lon) {
      placePin(lastGood);
      remember();
    }
  },
  promise: ({ promise: result }) => {
    put("promise", result.sentence);
    put("epsilon", small(result.epsilon));
    put("mean-error", metres(result.mean_error));
  },
  // What was found, seen at once; for screen readers with more about the map, once it has come to rest.
  describe: (finding, more = "") => {
    put("finding", finding);
    clearTimeout(describing);
    const words = `${finding} ${more}`.trim();
    describing = setTimeout(() => {
      if (words !== announced) put("map-summary", words);
      announced = words;
    }, SETTLED);
  },
  remember: () => remember(),
};
let tab = "explore",
  lastGood = app.me,
  describing = null,
  announced = "",
  large = false;

function newSeed() {
  return Number(crypto.getRandomValues(new BigUint64Array(1))[0] >> 15n);
}

// ---- your place ----

const pin = makePin(app.me, {
  name: "truth",
  text: "you",
  side: "left",
  label: "You are here. Drag the pin, or move it with the arrow keys.",
  moving: (at) => {
    app.me = at;
    parts[tab].update(app, "drag");
  },
  moved: (at) => moveMe(at),
});

// To six decimals: the same place gets the same answer.
function asInLink(at) {
  return L.latLng(Number(at.lat.toFixed(6)), Number(at.lng.toFixed(6)));
}

function placePin(at) {
  app.me = asInLink(at);
  pin.setLatLng(app.me);
}

function moveMe(at) {
  placePin(at);
  parts[tab].update(app, "place");
  remember();
}

function clicked(at) {
  if (parts[tab].click) {
    parts[tab].click(app, at);
    remember();
  } else moveMe(at);
}
// The second click of a double click is at the same place.
map.on("click", (event) => {
  if (!(event.originalEvent?.detail > 1)) clicked(event.latlng);
});
// Marks that would cover each other stand apart, at every zoom.
map.on("zoomend", () => parts[tab].redraw?.(app));
const frame = map.getContainer();
frame.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target === frame) clicked(map.getCenter());
});
frame.setAttribute("aria-label", "Map. Arrow keys move it, plus and minus zoom, Enter places you at its centre.");
frame.setAttribute("role", "application");
frame.setAttribute("aria-describedby", "map-summary");

// ---- the view in the address: everything but places of your own, unless asked ----

function remember(options) {
  const own = app.me.equals(HOME) ? {} : { at: `${app.me.lat.toFixed(6)},${app.me.lng.toFixed(6)}` };
  for (const part of Object.values(parts)) Object.assign(own, part.remember?.());
  const shared = $("share-place").checked;
  // Seed and report together reveal a place: without the place, the link has the seed of public places only.
  const last = shared || !Object.keys(own).length ? { seed: app.seed } : {};
  address.write(large ? { tab, size: "large" } : { tab }, shared ? { ...own, ...last } : last, options);
  code();
}

const code = () => showCode(tab, { place: app.place(), privacy: privacy(), shared: $("share-place").checked });
prepareCode(code);

const pointOf = (text) => {
  const at = (text ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
  return at.length === 2 && at.every(Number.isFinite) && bounds.pad(1).contains(at) ? L.latLng(at) : null;
};

function restore(state) {
  const shared = [...state.keys()].filter((name) =>
    ["at", "seed", ...Object.values(parts).flatMap((part) => part.places ?? [])].includes(name),
  );
  address.restore(state, ["tab", "size", ...shared]);
  enlarge(state.get("size") === "large");
  const at = pointOf(state.get("at"));
  if (at) placePin(at);
  if (/^\d{1,15}$/.test(state.get("seed") ?? "")) app.seed = Number(state.get("seed"));
  if (at || shared.length > 1) $("share-place").checked = true;
  for (const part of Object.values(parts)) part.restore?.(state, pointOf);
  if (Object.hasOwn(parts, state.get("tab"))) tab = state.get("tab");
}

window.addEventListener("hashchange", () => {
  parts[tab].leave?.();
  restore(address.read());
  follow();
  show();
});

// ---- tabs ----

const titleOf = (name) => document.querySelector(`#lead [data-part=${name}] h2`);

function open(name) {
  if (name === tab) return;
  parts[tab].leave?.();
  tab = name;
  remember({ step: true });
  show();
}

function show() {
  app.layer.clearLayers();
  say(null);
  for (const button of document.querySelectorAll("[role=tab]")) {
    const chosen = button.dataset.tab === tab;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  for (const part of document.querySelectorAll("[data-part]")) part.hidden = part.dataset.part !== tab;
  const { figures = false, click, hint = "" } = parts[tab];
  $("privacy").hidden = figures;
  $("figures").hidden = !figures;
  $("mapframe").hidden = figures;
  if (figures || click) pin.remove();
  else pin.addTo(map);
  $("panel").scrollTop = 0;
  put("hint", hint);
  $("hint").hidden = !hint;
  code();
  document.title = `${$(`tab-${tab}`).textContent}: ${titleOf(tab).textContent} · geoind`;
  app.describe(hint);
  parts[tab].enter(app);
}

for (const button of document.querySelectorAll("[role=tab]")) {
  button.addEventListener("click", () => {
    open(button.dataset.tab);
    titleOf(tab).focus();
  });
  button.addEventListener("keydown", (event) => {
    const names = Object.keys(parts),
      at = names.indexOf(tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(names[(to + names.length) % names.length]);
    $(`tab-${tab}`).focus();
  });
}

// ---- controls ----

prepareDial(() => parts[tab].update(app, "privacy"));
$("panel").addEventListener("change", () => remember());
$("privacy").addEventListener("submit", (event) => event.preventDefault());

$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("geoind-theme", theme);
  } catch {
    /* storage is off: for this visit only */
  }
  paint();
  parts[tab].redraw?.(app);
});

// For a projector: larger text, in the link as well; and the map alone on the screen.
function enlarge(wanted) {
  large = wanted;
  document.documentElement.dataset.size = large ? "large" : "usual";
  $("large").setAttribute("aria-pressed", large);
}
$("large").addEventListener("click", () => {
  enlarge(!large);
  remember();
});
$("full").addEventListener("click", () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else
    $("stage")
      .requestFullscreen()
      .catch((error) => say(`No full screen: ${error.message}`));
});

$("share").addEventListener("click", async () => {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    put("share", "Copied");
  } catch {
    put("share", "Copy the address");
  }
  setTimeout(() => put("share", "Copy link"), 1500);
});

$("picture").addEventListener("click", async () => {
  if (parts[tab].figures && !$("four").querySelector("svg")) {
    say("The four maps are not solved yet.");
    return;
  }
  const whose = `${document.body.dataset.attribution} · geoind`;
  const caption = `${titleOf(tab).textContent}. ${parts[tab].figures ? "" : $("promise").textContent} ${$("finding").textContent}`;
  const taken = parts[tab].figures ? takeFigures($("four"), caption, whose) : takePicture(caption, whose);
  download(await taken, `geoind-${tab}.png`);
});

for (const part of Object.values(parts)) part.init?.(app);
restore(address.read());
follow();
remember();
show();
document.documentElement.dataset.ready = "yes";
