// Explore: one report, a cloud, rings, the lattice, and what an observer believes.

import { asker } from "./ask.js";
import { map, circle, colour, diamond, dot, label, line, metresPerPixel, north, speck } from "./map.js";
import { metres, percent, put } from "./words.js";

const $ = (id) => document.getElementById(id);
const shown = (what) => $(`show-${what}`).checked;
const HEAT = { 0.15: "#fde0c2", 0.45: "#f7a35c", 0.75: "#dd5a12", 1: "#8f2600" };
const LATTICE_ZOOM = 19.5;

let app = null, told = null, asked = null, active = false, before = null;
const ask = asker("/api/explore", (answer, question) => { app.accepted(question); told = answer; asked = question; draw(); }, (question) => app.refused(question));

function question() {
  ask({ ...app.place(), ...app.privacy(), cloud: 200, seed: app.seed });
}

function draw() {
  if (!active || !told) return;
  app.promise(told);
  const layer = app.layer.clearLayers();
  if (shown("belief")) heat().addTo(layer);
  if (shown("lattice")) lattice().addTo(layer);
  if (shown("cloud")) for (const at of told.cloud) speck(at, "report").addTo(layer);
  if (shown("rings")) {
    for (const ring of told.rings) {
      circle(app.me, ring.radius, "ring", { weight: 1.5, dashArray: "5 5" }).addTo(layer);
      label(north(app.me, ring.radius), percent(ring.share)).addTo(layer);
    }
  }
  app.drawMe();
  const report = [told.report.lat, told.report.lon], remapped = [told.remapped.lat, told.remapped.lon];
  if (shown("report")) {
    line([app.me, report], "report", { weight: 1.5, dashArray: "2 4" }).addTo(layer);
    dot(report, "report").bindTooltip("report", { permanent: true, direction: "left", offset: [-8, 0] }).addTo(layer);
  }
  if (shown("remapped")) {
    line([report, remapped], "remapped", { weight: 1.5 }).addTo(layer);
    diamond(remapped, "remapped").addTo(layer);
  }
  numbers();
}

function heat() {
  const radius = Math.max(9, 26 / metresPerPixel());
  return L.heatLayer(told.belief.places, { radius, blur: radius * 0.8, max: 1, maxZoom: 1, minOpacity: 0, gradient: HEAT });
}

function lattice() {
  const group = L.layerGroup();
  if (map.getZoom() < LATTICE_ZOOM) return group;
  const step = told.lattice, view = map.getBounds(), rows = [];
  const low = (value) => Math.floor(value / step) * step;
  for (let lat = low(view.getSouth()); lat <= view.getNorth(); lat += step) rows.push([[lat, view.getWest()], [lat, view.getEast()]]);
  for (let lon = low(view.getWest()); lon <= view.getEast(); lon += step) rows.push([[view.getSouth(), lon], [view.getNorth(), lon]]);
  return group.addLayer(line(rows, "ring", { weight: 0.5, opacity: 0.7 }));
}

function numbers() {
  put("report-error", metres(told.report.error));
  put("remapped-error", metres(told.remapped.error));
  put("nearby-radius", metres(asked.radius));
  put("nearby", percent(told.belief.nearby));
  put("nearby-before", percent(told.belief.nearby_before));
  $("rings").replaceChildren(...told.rings.map((ring) => {
    const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.scope = "row";
    head.textContent = `${percent(ring.share)} of them`;
    cell.textContent = metres(ring.radius);
    row.append(head, cell);
    return row;
  }));
  const far = shown("lattice") && map.getZoom() < LATTICE_ZOOM ? " Zoom in on the report to see it." : "";
  put("lattice-note", `Reports end on a public lattice, ${told.lattice_metres.toFixed(1)} m from row to row: digits beyond it could betray the truth.${far}`);
}

export const explore = {
  hint: "Click the map to place yourself",
  init(shell) {
    app = shell;
    for (const what of ["report", "cloud", "rings", "belief", "remapped", "lattice"]) $(`show-${what}`).addEventListener("change", draw);
    $("show-lattice").addEventListener("change", () => {
      if (shown("lattice") && told && map.getZoom() < LATTICE_ZOOM) {
        before = [map.getCenter(), map.getZoom()];
        map.setView([told.report.lat, told.report.lon], 20.5, { animate: false });
      } else if (!shown("lattice") && before) {
        map.setView(...before, { animate: false });
        before = null;
      }
    });
    $("redraw").addEventListener("click", () => { app.newSeed(); question(); });
    $("random-place").addEventListener("click", () => {
      const box = app.bounds.pad(-0.15), between = (a, b) => a + Math.random() * (b - a);
      app.moveMe(L.latLng(between(box.getSouth(), box.getNorth()), between(box.getWest(), box.getEast())));
    });
    map.on("zoomend moveend", () => { if (active && (shown("lattice") || shown("belief"))) draw(); });
  },
  enter() { active = true; draw(); question(); },
  leave() { active = false; },
  update(shell, why) { if (why === "place") app.newSeed(); question(); },
  redraw: draw,
};
