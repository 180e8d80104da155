// Explore: one report, a cloud, rings, the lattice, here or there, and what an observer believes.

import { asker } from "./ask.js";
import { hideBelief, showBelief } from "./belief.js";
import { gauge } from "./gauge.js";
import { circle, clearOf, diamond, dot, fit, label, line, map, north, speck } from "./map.js";
import { makePin } from "./pin.js";
import { direction, metres, odds, percent, put, times } from "./words.js";

const $ = (id) => document.getElementById(id);
const LAYERS = ["report", "cloud", "rings", "there", "belief", "remapped", "lattice"];
const shown = (what) => $(`show-${what}`).checked;
const LATTICE_ZOOM = 19.5;

let app = null,
  result = null,
  asked = null,
  active = false,
  refit = true,
  before = null,
  other = null,
  lastOther = null,
  pin = null;
const ask = asker(
  "/api/explore",
  (answer, question) => {
    app.accepted(question);
    lastOther = other && question.there ? L.latLng(question.there.lat, question.there.lon) : null;
    const entered = refit,
      turned = refit || asked.radius !== question.radius || asked.factor !== question.factor;
    const redrawn = !asked || asked.seed !== question.seed;
    result = answer;
    asked = question;
    refit = false;
    draw();
    const report = L.latLng(result.report.lat, result.report.lon);
    if (active && (turned || (redrawn && !map.getBounds().contains(report))))
      fit(circleAround(rings(0.95)).extend(report), entered);
  },
  (question) => {
    app.refused(question);
    // The second pin as well: it stays with you, or goes back to where it was last taken.
    if (other && question.there && other.equals([question.there.lat, question.there.lon])) other = lastOther;
    pin.setLatLng(there());
  },
);

const rings = (share) => result.rings.find((ring) => ring.share === share).radius;
const circleAround = (radius) => app.me.toBounds(2 * radius);

// The other place: where it was dragged to, or as far to the east as the promise reaches.
function there() {
  if (other) return other;
  const { radius } = app.privacy();
  return L.latLng(app.me.lat, app.me.lng + radius / (111195 * Math.cos((app.me.lat * Math.PI) / 180)));
}

function question() {
  const second = there();
  pin.setLatLng(second);
  ask({
    ...app.place(),
    ...app.privacy(),
    cloud: 200,
    seed: app.seed,
    belief: shown("belief"),
    there: shown("there") ? { lat: second.lat, lon: second.lng } : null,
  });
}

function draw() {
  if (!active || !result) return;
  app.promise(result);
  const layer = app.layer.clearLayers();
  if (shown("belief") && result.belief) showBelief(result.belief).catch((error) => app.say(error.message));
  else hideBelief();
  if (shown("lattice")) lattice().addTo(layer);
  if (shown("cloud")) for (const at of result.cloud) speck(at, "report").addTo(layer);
  if (shown("rings")) {
    for (const ring of result.rings) {
      circle(app.me, ring.radius, "ring", { weight: 1.5, dashArray: "5 5" }).addTo(layer);
      label(north(app.me, ring.radius), percent(ring.share)).addTo(layer);
    }
  }
  // Far out, where both are one point, the second pin stands next to its place.
  pin.setLatLng(clearOf(there(), [app.me]));
  const report = [result.report.lat, result.report.lon],
    remapped = [result.remapped.lat, result.remapped.lon],
    pins = shown("there") ? [app.me, pin.getLatLng()] : [app.me],
    marked = clearOf(report, pins);
  if (shown("there")) {
    line([app.me, pin.getLatLng()], "there", { weight: 1.5 }).addTo(layer);
    pin.addTo(map);
  } else pin.remove();
  if (shown("report")) {
    line([app.me, report], "report", { weight: 1.5, dashArray: "2 4" }).addTo(layer);
    const above = result.report.lat > app.me.lat; // its name lies away from you
    if (!marked.equals(report)) line([report, marked], "report", { weight: 1.5 }).addTo(layer);
    dot(marked, "report")
      .bindTooltip("report", { permanent: true, direction: above ? "top" : "bottom", offset: [0, above ? -8 : 8] })
      .addTo(layer);
  }
  if (shown("remapped")) {
    const best = clearOf(remapped, [...pins, marked]);
    line([report, remapped, best], "remapped", { weight: 1.5 }).addTo(layer);
    diamond(best, "remapped").addTo(layer);
  }
  numbers();
}

function lattice() {
  const group = L.layerGroup();
  if (map.getZoom() < LATTICE_ZOOM) return group;
  const step = result.lattice,
    view = map.getBounds(),
    rows = [];
  const low = (value) => Math.floor(value / step) * step;
  for (let lat = low(view.getSouth()); lat <= view.getNorth(); lat += step)
    rows.push([
      [lat, view.getWest()],
      [lat, view.getEast()],
    ]);
  for (let lon = low(view.getWest()); lon <= view.getEast(); lon += step)
    rows.push([
      [view.getSouth(), lon],
      [view.getNorth(), lon],
    ]);
  return group.addLayer(line(rows, "ring", { weight: 0.5, opacity: 0.7 }));
}

function hereOrThere() {
  $("odds").hidden = !shown("there") || !result.odds;
  if ($("odds").hidden) return "";
  const { distance, change, limit } = result.odds;
  $("odds-gauge").replaceChildren(gauge({ change, limit, left: "there", right: "here" }));
  put("odds-before", odds(result.odds.before));
  put("odds-after", odds(result.odds.after));
  const words = change >= 1 ? `${times(change)} towards here` : `${times(1 / change)} towards there`;
  put(
    "odds-note",
    `The report changed the odds ${words}. No report about places ${metres(distance)} apart can exceed ${times(limit)}: e to the power of ε times ${metres(distance)}. That is the definition. Drag the second pin.`,
  );
  return `The report changed the odds between here and there ${words}, at most ${times(limit)}. `;
}

function numbers() {
  put("report-error", metres(result.report.error));
  put("remapped-error", metres(result.remapped.error));
  $("rings").replaceChildren(
    ...result.rings.map((ring) => {
      const row = document.createElement("tr"),
        head = document.createElement("th"),
        cell = document.createElement("td");
      head.scope = "row";
      head.textContent = `${percent(ring.share)} of them`;
      cell.textContent = metres(ring.radius);
      row.append(head, cell);
      return row;
    }),
  );
  const far = shown("lattice") && map.getZoom() < LATTICE_ZOOM ? " Zoom in on the report to see it." : "";
  put(
    "lattice-note",
    `Reports end on a public lattice, ${result.lattice_metres.toFixed(1)} m from row to row: more digits could reveal the true location.${far}`,
  );
  const compared = hereOrThere();
  app.describe(
    `This report is ${metres(result.report.error)} off, to the ${direction(app.me, result.report)}; nine of ten fall within ${metres(rings(0.9))}.`,
    `${compared}${result.belief ? `An observer is ${result.belief.sentence}` : ""}`,
  );
}

async function anotherPlace() {
  other = null;
  await app.anotherPlace();
  fit(circleAround(rings(0.95)));
}

export const explore = {
  hint: "Drag the pin, or click the map",
  init(shell) {
    app = shell;
    const moving = (at) => {
      other = app.asInLink(clearOf(at, [app.me]));
      question();
    };
    pin = makePin(there(), {
      name: "there",
      text: "there?",
      label: "The other place, to compare with yours. Drag the pin, or move it with the arrow keys.",
      moving,
      moved: (at) => {
        moving(at);
        app.remember();
      },
    });
    for (const what of LAYERS)
      $(`show-${what}`).addEventListener("change", ["there", "belief"].includes(what) ? question : draw);
    $("show-lattice").addEventListener("change", () => {
      if (shown("lattice") && result && map.getZoom() < LATTICE_ZOOM) {
        before = [map.getCenter(), map.getZoom()];
        map.setView([result.report.lat, result.report.lon], 20.5, { animate: false });
      } else if (!shown("lattice") && before) {
        map.setView(...before, { animate: false });
        before = null;
      }
    });
    $("redraw").addEventListener("click", () => {
      app.newSeed();
      question();
    });
    $("random-place").addEventListener("click", () => anotherPlace().catch((error) => app.say(error.message)));
    map.on("moveend", () => {
      if (active && shown("lattice")) draw();
    });
  },
  // The second pin in the link.
  places: ["there"],
  remember: () => (other ? { there: `${other.lat.toFixed(6)},${other.lng.toFixed(6)}` } : {}),
  restore(state, pointOf) {
    other = pointOf(state.get("there"));
  },
  enter() {
    active = refit = true;
    draw();
    question();
  },
  leave() {
    active = false;
    pin.remove();
    hideBelief();
  },
  update(_, why) {
    if (why === "place") app.newSeed();
    question();
  },
  redraw: draw,
};
