// Compare: the 9x9 comparison, cost against privacy, from results that were computed beforehand.

import { adopt } from "./address.js";
import { get, retry, say } from "./ask.js";
import { canvas, element } from "./chart.js";
import { css } from "./colours.js";
import { mechanisms } from "./mechanisms.js";
import { beliefColour } from "./scale.js";

const $ = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`)?.value;
// People are everywhere, more of them in some cells: no mechanism is favoured.
const USUAL = "planar Laplace",
  OPENS_WITH = "synthetic city";
// The mechanisms of the literature, in the order of their numbers in the figure.
const NAMED = {
  cloaking:
    "Reports the zone of 3 × 3 cells. Simple, and exact about the zone: where people are in a few cells only, the zone gives them away. (Gruteser and Grunwald 2003)",
  "optimal for uniform":
    "The largest error of an observer who believes that people are everywhere. An observer with a better prior finds more. (Shokri et al. 2012)",
  "optimal for the prior":
    "The largest error of an observer with this very prior: nothing above it at this cost. It must be solved again for each prior. (Shokri et al. 2012)",
  "planar Laplace":
    "Bounds the change of an observer’s odds between two places, for every prior knowledge. It needs no prior. (Andrés et al. 2013)",
  "optimal geo-ind":
    "The same bound as planar Laplace at the least cost for this prior. Cheaper for the user, so the observer is closer as well. (Bordenabe et al. 2014)",
};
const WIDTH = 430,
  HEIGHT = 330,
  LEFT = 52,
  RIGHT = 416,
  TOP = 14,
  BOTTOM = 282,
  TOUCH = 9;
let data = null,
  app = null,
  loading = null;

function number(value, unit) {
  if (value === null) return "∞";
  const text =
    unit === "1/m"
      ? value.toPrecision(3)
      : unit === "m"
        ? Math.round(value).toString()
        : unit === "bits"
          ? value.toFixed(2)
          : `${(100 * value).toFixed(1)} %`;
  return unit && unit !== "1/m" ? `${text} ${unit}` : unit ? `${text} per m` : text;
}

function card(title, words, ...content) {
  const box = document.createElement("figure"),
    head = document.createElement("h2"),
    text = document.createElement("p");
  box.className = "card";
  head.textContent = title;
  text.textContent = words;
  box.append(head, text, ...content);
  return box;
}

function choose(name) {
  $("mechanism").value = name;
  $("mechanism").dispatchEvent(new Event("input", { bubbles: true }));
  $("mechanism").dispatchEvent(new Event("change", { bubbles: true }));
}

// Cost to the right, privacy upwards; a hollow point has no epsilon. Nothing lies above the diagonal: an observer can
// always take the report itself as the guess.
function scatter(all, mechanism) {
  const names = Object.keys(NAMED),
    far = (row) => Math.max(row.expected_loss, row.adversary_error);
  // As far as the named mechanisms and the chosen one go: the others may be anywhere.
  const end =
    20 *
    Math.ceil(
      Math.max(...all.filter((row) => names.includes(row.mechanism) || row.mechanism === mechanism).map(far)) / 18,
    );
  const rows = all.filter((row) => far(row) <= end);
  const x = (metres) => LEFT + (metres / end) * (RIGHT - LEFT),
    y = (metres) => BOTTOM - (metres / end) * (BOTTOM - TOP);
  const said = rows.map(
    (row) => `${row.mechanism} costs ${number(row.expected_loss, "m")} and leaves ${number(row.adversary_error, "m")}`,
  );
  const svg = canvas(WIDTH, HEIGHT, `Cost against adversary error: ${said.join("; ")}.`);
  svg.setAttribute("class", "scatter");
  for (const tick of [0, 0.5, 1].map((share) => share * end)) {
    svg.append(
      element("line", { x1: LEFT, x2: RIGHT, y1: y(tick), y2: y(tick), class: "axis" }),
      element("line", { x1: x(tick), x2: x(tick), y1: TOP, y2: BOTTOM, class: "axis" }),
      element("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", class: "soft" }, Math.round(tick)),
      element("text", { x: x(tick), y: BOTTOM + 17, "text-anchor": "middle", class: "soft" }, Math.round(tick)),
    );
  }
  svg.append(
    element("line", { x1: x(0), y1: y(0), x2: x(end), y2: y(end), class: "limit" }),
    element(
      "text",
      { x: (LEFT + RIGHT) / 2, y: HEIGHT - 10, "text-anchor": "middle" },
      "cost: expected distance of the report (m)",
    ),
    element(
      "text",
      { transform: `translate(14 ${(TOP + BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" },
      "privacy: adversary error (m)",
    ),
  );
  const spots = [];
  // The named ones are drawn last, over the others.
  for (const row of [...rows].sort(
    (a, b) => Number(names.includes(a.mechanism)) - Number(names.includes(b.mechanism)),
  )) {
    const at = { x: x(row.expected_loss), y: y(row.adversary_error) },
      known = names.indexOf(row.mechanism);
    const point = element("circle", {
      cx: at.x,
      cy: at.y,
      r: known < 0 ? 3.5 : 6.5,
      class: `point${known < 0 ? " other" : ""}${row.measured_epsilon === null ? " hollow" : ""}${row.mechanism === mechanism ? " strong" : ""}`,
    });
    point.append(element("title", {}, said[rows.indexOf(row)]));
    point.addEventListener("click", () => choose(row.mechanism));
    svg.append(point);
    if (known < 0) continue;
    const spot = spots.find((other) => Math.hypot(other.x - at.x, other.y - at.y) < TOUCH);
    if (spot) spot.numbers.push(known + 1);
    else spots.push({ ...at, numbers: [known + 1] });
  }
  for (const spot of spots)
    svg.append(
      element(
        "text",
        {
          x: spot.x > RIGHT - 60 ? spot.x - 10 : spot.x + 10,
          y: spot.y - 8,
          "text-anchor": spot.x > RIGHT - 60 ? "end" : "start",
          class: "number",
        },
        spot.numbers.sort().join(", "),
      ),
    );
  return svg;
}

function reasons(rows, mechanism) {
  const list = document.createElement("ol");
  list.className = "reasons";
  list.setAttribute("aria-label", "Why each mechanism exists");
  list.append(
    ...Object.entries(NAMED).map(([name, reason]) => {
      const item = document.createElement("li"),
        button = document.createElement("button"),
        row = rows.find((one) => one.mechanism === name);
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", name === mechanism);
      button.addEventListener("click", () => {
        choose(name);
        [...document.querySelectorAll(".reasons button")].find((other) => other.textContent === name).focus();
      });
      item.append(
        button,
        ` ${reason} ${row.measured_epsilon === null ? "ε unbounded." : `ε = ${number(row.measured_epsilon, "1/m")}.`}`,
      );
      return item;
    }),
  );
  return list;
}

function town(name) {
  const { columns, rows } = data.grid,
    cell = 22,
    svg = canvas(columns * cell + 2, rows * cell + 2, `Prior: ${name}`);
  data.priors[name].forEach((mass, index) => {
    const column = index % columns,
      row = rows - 1 - Math.floor(index / columns);
    svg.append(
      element("rect", {
        x: column * cell + 1,
        y: row * cell + 1,
        width: cell - 2,
        height: cell - 2,
        rx: 2,
        fill: mass ? beliefColour(mass) : css("wash"),
      }),
    );
  });
  // Cloaking reports the zone: three by three cells.
  const border = (x1, y1, x2, y2) =>
    svg.append(element("line", { x1, y1, x2, y2, stroke: css("soft"), "stroke-width": 1 }));
  const right = columns * cell + 1,
    bottom = rows * cell + 1;
  for (let x = 1; x <= right; x += data.zone[0] * cell) border(x, 1, x, bottom);
  for (let y = 1; y <= bottom; y += data.zone[1] * cell) border(1, y, right, y);
  return svg;
}

// Rows of cells, the first of each a heading.
function table(head, lines) {
  const made = document.createElement("table"),
    body = made.createTBody();
  if (head)
    made
      .createTHead()
      .insertRow()
      .append(...head.map((text) => Object.assign(document.createElement("th"), { scope: "col", textContent: text })));
  for (const [name, ...values] of lines) {
    const line = body.insertRow();
    line.append(Object.assign(document.createElement("th"), { scope: "row", textContent: name }));
    for (const value of values) line.insertCell().textContent = value;
  }
  return made;
}

const profile = (row) =>
  table(
    null,
    Object.entries(data.measures).map(([key, measure]) => [
      `${measure.title} (${measure.good})`,
      number(row[key], measure.unit),
    ]),
  );

function tallies() {
  const rivals = Object.keys(NAMED).filter((name) => name !== USUAL);
  const score = (rival, way) => {
    const { wins, losses, ties } = data.tallies.find((one) => one.mechanism === rival && one.equalised === way);
    return `${wins} – ${losses} – ${ties}`;
  };
  return table(
    ["planar Laplace against", "same cost if uniform", "same cost under each prior"],
    rivals.map((rival) => [rival, score(rival, "uniform"), score(rival, "evaluated")]),
  );
}

function draw() {
  if (!data) return;
  const prior = chosen("prior"),
    mechanism = $("mechanism").value,
    equalised = chosen("equalised");
  const here = data.rows.filter((row) => row.equalised === equalised && row.prior === prior),
    row = here.find((one) => one.mechanism === mechanism);
  const main = card(
    "Cost and privacy of each mechanism",
    `People: ${prior}. Higher is more private, further left is cheaper. Small points: other mechanisms of the comparison.`,
    scatter(here, mechanism),
    reasons(here, mechanism),
    Object.assign(document.createElement("p"), {
      textContent:
        "A hollow point has no bound: a single report can rule out a place for certain, and two such reports together can leave one place. A full point keeps every place possible, after any number of reports.",
    }),
  );
  main.classList.add("wide", "with-reasons");
  const pictured = card("Where people usually are", prior, town(prior));
  pictured.classList.add("town");
  const score = card(
    `Over all ${Object.keys(data.priors).length} priors`,
    "In how many priors planar Laplace leaves the observer a larger – smaller – equal error.",
    tallies(),
  );
  score.classList.add("wide", "tallies");
  $("comparison").replaceChildren(
    main,
    pictured,
    card(upper(mechanism), `People: ${prior}. All that is measured.`, profile(row)),
    score,
  );
  app.describe(finding(prior, here));
}

const upper = (text) => text[0].toUpperCase() + text.slice(1);

function finding(prior, here) {
  const [laplace, cloaking] = [USUAL, "cloaking"].map((name) => here.find((one) => one.mechanism === name));
  const both = (row) =>
    `costs ${number(row.expected_loss, "m")} and keeps the observer ${number(row.adversary_error, "m")} off`;
  return `${upper(prior)}: planar Laplace ${both(laplace)}; cloaking ${both(cloaking)}.`;
}

function radios(holder, name, values, usual) {
  for (const value of values) {
    const label = document.createElement("label"),
      input = document.createElement("input");
    Object.assign(input, { type: "radio", name, value });
    if (value === usual) input.setAttribute("checked", "");
    label.append(input, ` ${value}`);
    holder.append(label);
  }
}

async function load() {
  data = await get("/api/compare");
  radios($("compare-priors"), "prior", Object.keys(data.priors), OPENS_WITH);
  for (const name of data.mechanisms) $("mechanism").add(new Option(name, name, name === USUAL, name === USUAL));
  adopt($("part-compare"));
  app.remember();
  $("part-compare").addEventListener("input", draw);
}

// A second visit while it loads waits for the same answer.
async function enter() {
  try {
    loading ??= load();
    await loading;
    draw();
  } catch (error) {
    loading = null;
    if (!retry(error, enter)) say(error.message);
  }
}

function redraw() {
  mechanisms.redraw();
  draw();
}

export const compare = {
  figures: true,
  init(shell) {
    app = shell;
    mechanisms.init(shell);
  },
  enter() {
    mechanisms.enter();
    return enter();
  },
  leave: mechanisms.leave,
  update: redraw,
  redraw,
};
