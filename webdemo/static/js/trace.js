// A trace: a walk reported at each step, against the same walk within a budget.

import { asker } from "./ask.js";
import { dot, fit, line, speck } from "./map.js";
import { many, metres, put, small, valued } from "./words.js";

const $ = (id) => document.getElementById(id);
let app = null,
  result = null,
  active = false,
  path = [],
  lastGood = [];
const ask = asker(
  "/api/trace",
  (answer, question) => {
    lastGood = cornersOf(question);
    // The walk may have been removed meanwhile.
    result = path.length < 2 ? null : answer;
    draw();
  },
  (question) => {
    // A corner that was refused is not part of the walk.
    if (question.path.length === path.length) path = lastGood;
    draw();
    app.remember();
  },
);
const cornersOf = (question) => question.path.map((corner) => L.latLng(corner.lat, corner.lon));

function suggested() {
  const box = app.bounds,
    at = (x, y) =>
      app.asInLink(
        L.latLng(
          box.getSouth() + y * (box.getNorth() - box.getSouth()),
          box.getWest() + x * (box.getEast() - box.getWest()),
        ),
      );
  return [at(0.16, 0.28), at(0.4, 0.395), at(0.56, 0.41), at(0.845, 0.42), at(0.84, 0.62), at(0.55, 0.66)];
}

const isSuggested = () => {
  const usual = suggested();
  return path.length === usual.length && path.every((corner, i) => corner.equals(usual[i]));
};

function question() {
  valued("step", metres(Number($("step").value)));
  valued("trace-budget", many(Number($("trace-budget").value), "report"));
  if (path.length < 2) {
    result = null;
    draw();
    return;
  }
  ask({
    ...app.privacy(),
    path: path.map((corner) => ({ lat: corner.lat, lon: corner.lng })),
    step: Number($("step").value),
    budget: Number($("trace-budget").value),
    seed: app.seed,
  });
}

function draw() {
  if (!active) return;
  const layer = app.layer.clearLayers();
  // Not disabled: a button that was pressed keeps the focus.
  for (const id of ["trace-undo", "trace-clear"]) $(id).setAttribute("aria-disabled", path.length < 1);
  $("trace-redraw").setAttribute("aria-disabled", path.length < 2);
  if (result) {
    app.promise(result);
    for (const way of ["naive", "budgeted"]) {
      const walk = result[way];
      put(`${way}-count`, walk.reports.length);
      put(`${way}-spent`, small(walk.spent));
      put(`${way}-factor`, `×${walk.factor}`);
      put(`${way}-error`, metres(walk.report_error));
      put(`${way}-guess`, metres(walk.guess_error));
      if (!$(`show-${way}`).checked) continue;
      for (const at of walk.reports)
        speck(at, way, { radius: way === "naive" ? 3.5 : 6, fillOpacity: way === "naive" ? 0.55 : 0.9 }).addTo(layer);
      if (walk.guess.length > 1) line(walk.guess, way, { weight: 3.5, opacity: 0.9 }).addTo(layer);
    }
  }
  if (path.length > 1) line(path, "truth", { weight: 3, dashArray: "1 7", lineCap: "round" }).addTo(layer);
  for (const corner of path) dot(corner, "truth", { radius: 5 }).addTo(layer);
  app.describe(
    result
      ? `With a report at each of ${many(result.steps.length, "step")}, an observer is ${metres(result.naive.guess_error)} off on average; with ${many(result.budgeted.reports.length, "report")} in all, ${metres(result.budgeted.guess_error)}.`
      : "Click two corners on the map: there is no walk yet.",
  );
  if (path.length)
    L.tooltip(path[0], { content: "your walk", permanent: true, direction: "bottom", offset: [0, 6] }).addTo(layer);
}

export const trace = {
  hint: "Click corners of a walk",
  init(shell) {
    app = shell;
    path = suggested();
    for (const id of ["step", "trace-budget"]) $(id).addEventListener("input", question);
    for (const id of ["show-naive", "show-budgeted"]) $(id).addEventListener("change", draw);
    $("trace-redraw").addEventListener("click", () => {
      if (path.length < 2) return;
      app.newSeed();
      question();
    });
    $("trace-clear").addEventListener("click", () => {
      path = lastGood = [];
      question();
    });
    $("trace-undo").addEventListener("click", () => {
      path = path.slice(0, -1);
      question();
    });
  },
  enter() {
    active = true;
    if (path.length > 1) fit(L.latLngBounds(path).pad(0.25), true);
    draw();
    question();
  },
  leave() {
    active = false;
  },
  // A walk of your own in the link.
  places: ["path"],
  remember: () =>
    path.length && !isSuggested()
      ? { path: path.map((corner) => `${corner.lat.toFixed(6)},${corner.lng.toFixed(6)}`).join(" ") }
      : {},
  restore(state, pointOf) {
    const corners = (state.get("path") ?? "").split(" ").map(pointOf);
    if (corners.every(Boolean)) path = corners.slice(0, 100);
  },
  click(_, at) {
    path = [...path, app.asInLink(at)];
    question();
  },
  update() {
    question();
  },
  redraw: draw,
};
