// Near me: the area of interest, the area of retrieval, and what came back.

import { asker } from "./ask.js";
import { circle, colour, dot, label, north, speck } from "./map.js";
import { metres, put } from "./words.js";

const $ = (id) => document.getElementById(id);
const LISTED = 5;
let app = null, told = null, asked = null, active = false;
const ask = asker("/api/near", (answer, question) => { app.accepted(question); told = answer; asked = question; draw(); }, (question) => app.refused(question));

function question() {
  put("query-radius-out", `${$("query-radius").value} m`);
  put("confidence-out", `${$("confidence").value} %`);
  ask({
    ...app.place(), ...app.privacy(), interest: Number($("query-radius").value),
    confidence: Number($("confidence").value) / 100, kind: $("kind").value, seed: app.seed,
  });
}

function draw() {
  if (!active || !told) return;
  app.promise(told);
  const layer = app.layer.clearLayers();
  const centre = L.latLng(told.centre), { interest } = asked;
  circle(centre, told.retrieval_radius, "report", { fill: true, fillOpacity: 0.07 }).addTo(layer);
  circle(app.me, interest, "truth", { fill: true, fillOpacity: 0.08 }).addTo(layer);
  label(north(centre, told.retrieval_radius), "what is asked for").addTo(layer);
  label(north(app.me, interest), "what you want").addTo(layer);
  for (const at of told.retrieved) speck(at, "retrieved", { fillOpacity: 0.75 }).addTo(layer);
  for (const place of told.kept) speck([place.lat, place.lon], "kept", { radius: 5, fillOpacity: 0.95 }).addTo(layer);
  for (const place of told.missed) speck([place.lat, place.lon], "missed", { radius: 5, fillOpacity: 0.3, stroke: true, weight: 2, color: colour.missed }).addTo(layer);
  dot(told.centre, "report").addTo(layer);
  put("retrieved", told.retrieved.length);
  put("kept", told.kept.length);
  put("missed", told.missed.length || "none");
  put("overhead", `${told.overhead.toFixed(1)} ×`);
  put("near-sentence", told.guarantee);
  put("near-covered", told.covered ? "This time the blue circle covers the red one." : "This time the blue circle does not cover the red one.");
  $("nearest").replaceChildren(...told.kept.slice(0, LISTED).map((place) => {
    const item = document.createElement("li"), name = document.createElement("span"), far = document.createElement("span");
    name.textContent = place.name || place.label.replaceAll("_", " ");
    far.textContent = metres(place.distance);
    item.append(name, far);
    return item;
  }));
}

export const near = {
  hint: "Click the map to place yourself",
  init(shell) {
    app = shell;
    for (const id of ["query-radius", "confidence", "kind"]) $(id).addEventListener("input", question);
    $("ask-near").addEventListener("click", () => { app.newSeed(); question(); });
  },
  enter() { active = true; draw(); question(); },
  leave() { active = false; },
  update(shell, why) { if (why === "place") app.newSeed(); question(); },
  redraw: draw,
};
