// Mechanisms on the map: four small maps of the same place, with the same cost.

import { asker } from "./ask.js";
import { canvas, element } from "./chart.js";
import { beliefColour, onScale } from "./scale.js";
import { buildings } from "./town.js";
import { metres, percent, put, small } from "./words.js";

const $ = (id) => document.getElementById(id);
const CELL = 20;
const SAYS = {
  cloaking: "reports the zone of 3 × 3 cells that you are in",
  "optimal for the prior": "the largest error of an observer who knows this town (Shokri et al. 2012)",
  "planar Laplace": "the noise of this demo: a bound for every two places (Andrés et al. 2013)",
  "optimal geo-ind":
    "such a bound, solved for this town: of all mechanisms of this cost the smallest ε (Bordenabe et al. 2014)",
};

let app = null,
  result = null,
  known = [],
  active = false;
const ask = asker(
  "/api/mechanisms",
  async (answer, asked) => {
    app.accepted(asked);
    result = answer;
    known = await buildings();
    draw();
  },
  (asked) => app.refused(asked),
);

const chosen = () => document.querySelector("input[name=on-map]:checked").value;
const question = () => ask({ ...app.place(), seed: app.seed });

// The town's buildings once, as a shape that all four maps use.
function background() {
  const [[south, west], [north, east]] = result.corners,
    size = CELL * result.columns;
  const at = ([lat, lon]) =>
    `${(((lon - west) / (east - west)) * size).toFixed(1)} ${(((north - lat) / (north - south)) * size).toFixed(1)}`;
  const near = ({ inside: [lat, lon] }) => lat > south && lat < north && lon > west && lon < east;
  return known
    .filter(near)
    .flatMap(({ rings }) => rings.flat().map((ring) => `M${ring.map(at).join("L")}Z`))
    .join("");
}

function smallMap(mechanism, ground) {
  const size = CELL * result.columns,
    shares = mechanism[chosen()];
  const svg = canvas(
    size,
    size,
    `${mechanism.name}: ${chosen() === "belief" ? "what an observer believes" : "where reports fall"}, at most ${percent(Math.max(...shares))} in a cell`,
  );
  svg.append(
    element("rect", { width: size, height: size, class: "ground" }),
    element("path", { d: ground, class: "houses" }),
  );
  const box = (cell) => ({
    x: (cell % result.columns) * CELL,
    y: (result.rows - 1 - Math.floor(cell / result.columns)) * CELL,
    width: CELL,
    height: CELL,
  });
  shares.forEach((share, cell) => {
    if (share < 0.0005) return;
    const look =
      chosen() === "belief"
        ? { fill: beliefColour(share), "fill-opacity": 0.9 }
        : { class: "falls", "fill-opacity": onScale(share).toFixed(3) };
    svg.append(element("rect", { ...box(cell), ...look }));
  });
  for (let line = 0; line <= result.columns; line += 3) {
    svg.append(
      element("line", { x1: line * CELL, x2: line * CELL, y1: 0, y2: size, class: "zone" }),
      element("line", { y1: line * CELL, y2: line * CELL, x1: 0, x2: size, class: "zone" }),
    );
  }
  // A cross: the report rules this cell out for certain.
  if (chosen() === "belief") {
    for (const cell of mechanism.excluded) {
      const { x, y } = box(cell);
      svg.append(element("path", { d: `M${x + 6} ${y + 6}l8 8m0 -8l-8 8`, class: "excluded" }));
    }
  }
  for (const cell of mechanism.report) svg.append(element("rect", { ...box(cell), class: "reported" }));
  svg.append(element("rect", { ...box(result.truth), class: "truth" }));
  return svg;
}

function draw() {
  if (!active || !result) return;
  const ground = background();
  $("four").replaceChildren(
    ...result.mechanisms.map((mechanism) => {
      const figure = document.createElement("figure"),
        caption = document.createElement("figcaption"),
        name = document.createElement("b"),
        words = document.createElement("span"),
        numbers = document.createElement("span");
      name.textContent = mechanism.name;
      words.textContent = SAYS[mechanism.name];
      numbers.className = "numbers";
      const bound =
        mechanism.epsilon === null
          ? `ε unbounded: this report rules out ${mechanism.excluded.length} cells`
          : `ε ${small(mechanism.epsilon)}: no report rules out a cell`;
      numbers.textContent = `${bound} · observer off by ${metres(mechanism.adversary_error)}`;
      caption.append(name, words, numbers);
      figure.append(smallMap(mechanism, ground), caption);
      return figure;
    }),
  );
  const where = result.inside ? "" : " You are beyond these cells: the nearest one was taken.";
  put(
    "mechanisms-words",
    `Each costs its users ${metres(result.mechanisms[0].cost)} on average over this town. Red: you. Blue outline: this time’s report.${chosen() === "belief" ? " A cross: ruled out for certain." : ""}${where}`,
  );
}

export const mechanisms = {
  init(shell) {
    app = shell;
    for (const radio of document.querySelectorAll("input[name=on-map]")) radio.addEventListener("change", draw);
    $("mechanisms-redraw").addEventListener("click", () => {
      app.newSeed();
      question();
    });
    $("mechanisms-place").addEventListener("click", () =>
      app.anotherPlace().then(
        () => {
          app.newSeed();
          question();
        },
        (error) => app.say(error.message),
      ),
    );
  },
  enter() {
    active = true;
    draw();
    question();
  },
  leave() {
    active = false;
  },
  redraw: draw,
};
