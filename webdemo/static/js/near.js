// Near me: the area of interest, the area of retrieval, and what came back.

import { asker } from "./ask.js";
import { circle, clearOf, colour, dot, fit, label, line, north, speck } from "./map.js";
import { many, metres, percent, put, times, valued } from "./words.js";

const $ = (id) => document.getElementById(id);
const LISTED = 5;
let app = null,
  result = null,
  asked = null,
  active = false,
  refit = true;
const ask = asker(
  "/api/near",
  (answer, question) => {
    app.accepted(question);
    shown(answer, question);
  },
  (question) => app.refused(question),
);

function shown(answer, question) {
  const entered = refit,
    same = !refit && ["radius", "factor", "interest", "confidence"].every((name) => asked[name] === question[name]);
  result = answer;
  asked = question;
  refit = false;
  draw();
  if (active && !same)
    fit(
      L.latLng(result.centre)
        .toBounds(2 * result.retrieval_radius)
        .extend(app.me.toBounds(2 * asked.interest)),
      entered,
    );
}

function question() {
  valued("query-radius", metres(Number($("query-radius").value)));
  valued("confidence", `${$("confidence").value} %`);
  ask({
    ...app.place(),
    ...app.privacy(),
    interest: Number($("query-radius").value),
    confidence: Number($("confidence").value) / 100,
    kind: $("kind").value,
    seed: app.seed,
  });
}

const nameOf = (place) => place.name || place.label.replaceAll("_", " ");

function draw() {
  if (!active || !result) return;
  app.promise(result);
  const layer = app.layer.clearLayers();
  const centre = L.latLng(result.centre),
    { interest } = asked;
  circle(centre, result.retrieval_radius, "report", { fill: true, fillOpacity: 0.07 }).addTo(layer);
  circle(app.me, interest, "truth", { fill: true, fillOpacity: 0.08 }).addTo(layer);
  label(north(centre, result.retrieval_radius), "what is asked for").addTo(layer);
  label(north(app.me, interest), "what you want").addTo(layer);
  for (const at of result.retrieved) speck(at, "retrieved", { fillOpacity: 0.75 }).addTo(layer);
  for (const place of result.kept) speck([place.lat, place.lon], "kept", { radius: 5, fillOpacity: 0.95 }).addTo(layer);
  for (const place of result.missed)
    speck([place.lat, place.lon], "missed", {
      radius: 5,
      fillOpacity: 0.3,
      stroke: true,
      weight: 2,
      color: colour.missed,
    }).addTo(layer);
  const marked = clearOf(result.centre, [app.me]);
  if (!marked.equals(result.centre)) line([result.centre, marked], "report", { weight: 1.5 }).addTo(layer);
  dot(marked, "report").addTo(layer);
  put("retrieved", result.retrieved.length);
  put("kept", result.kept.length);
  put("missed", result.missed.length || "none");
  put("overhead", times(result.overhead));
  put("near-sentence", result.guarantee);
  put("near-covered", `This time the blue circle ${result.covered ? "covers" : "does not cover"} the red one.`);
  put(
    "near-outside",
    result.outside > 0.005
      ? `${percent(result.outside)} of the blue circle lies beyond this map: a real service would return more.`
      : "The whole blue circle lies on this map.",
  );
  app.describe(
    `Asked for a circle of ${metres(result.retrieval_radius)}, the service returns ${many(result.retrieved.length, "place")}: ${result.kept.length} are near you, ${result.missed.length || "none"} missed.`,
    `The nearest: ${result.kept.slice(0, 3).map(nameOf).join(", ") || "none"}.`,
  );
  $("nearest").replaceChildren(
    ...result.kept.slice(0, LISTED).map((place) => {
      const item = document.createElement("li"),
        name = document.createElement("span"),
        far = document.createElement("span");
      name.textContent = nameOf(place);
      far.textContent = metres(place.distance);
      item.append(name, far);
      return item;
    }),
  );
}

export const near = {
  hint: "Drag the pin, or click the map",
  init(shell) {
    app = shell;
    for (const id of ["query-radius", "confidence", "kind"]) $(id).addEventListener("input", question);
    $("ask-near").addEventListener("click", () => {
      app.newSeed();
      question();
    });
  },
  enter() {
    active = refit = true;
    draw();
    question();
  },
  leave() {
    active = false;
  },
  update(_, why) {
    if (why === "place") app.newSeed();
    question();
  },
  redraw: draw,
};
