// Compare: the 9x9 comparison as figures, from results that were computed beforehand.

import { adopt } from "./address.js";
import { get, retry, say } from "./ask.js";
import { canvas, element, roundUp } from "./chart.js";
import { mechanisms } from "./mechanisms.js";
import { put } from "./words.js";

const $ = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`)?.value;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// The prior under which cloaking hides nothing.
const USUAL = "planar Laplace", OPENS_WITH = "zone centres";
let data = null, app = null, loading = null;

function number(value, unit) {
  if (value === null) return "∞";
  const text = unit === "1/m" ? value.toPrecision(3) : unit === "m" ? Math.round(value).toString() : unit === "bits" ? value.toFixed(2) : `${(100 * value).toFixed(1)} %`;
  return unit && unit !== "1/m" ? `${text} ${unit}` : unit ? `${text} per m` : text;
}

function card(title, words, figure, wide = false) {
  const box = document.createElement("figure"), head = document.createElement("h2"), text = document.createElement("p");
  box.className = wide ? "card wide" : "card";
  head.textContent = title;
  text.textContent = words;
  box.append(head, text, figure);
  return box;
}

// Horizontal bars: name, bar, number, each a button that chooses it.
function bars(title, entries, unit, choose) {
  const list = document.createElement("ol"), most = roundUp(Math.max(1e-9, ...entries.map((entry) => entry.value ?? 0)));
  list.className = "bars";
  list.setAttribute("aria-label", title);
  list.append(...entries.map((entry) => {
    const item = document.createElement("li"), button = document.createElement("button"), name = document.createElement("span"), bar = document.createElement("i"), value = document.createElement("b");
    button.type = "button";
    button.setAttribute("aria-pressed", entry.strong);
    button.dataset.name = entry.name;
    button.addEventListener("click", () => { choose(entry.key); [...document.querySelectorAll(".bars button")].find((other) => other.dataset.name === entry.name)?.focus(); });
    name.textContent = entry.name;
    value.textContent = number(entry.value, unit);
    bar.className = entry.value === null ? "endless" : "";
    bar.style.setProperty("--share", entry.value === null ? 1 : entry.value / most);
    button.append(name, bar, value);
    item.append(button);
    return item;
  }));
  // Up and down go through the bars, as in any list of choices.
  list.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    buttons[Math.min(buttons.length - 1, Math.max(0, to))].focus();
  });
  return list;
}

function chooseMechanism(name) {
  $("mechanism").value = name;
  $("mechanism").dispatchEvent(new Event("input", { bubbles: true }));
  $("mechanism").dispatchEvent(new Event("change", { bubbles: true }));
}

function choosePrior(name) {
  const radio = document.querySelector(`input[name=prior][value="${name}"]`);
  radio.checked = true;
  radio.dispatchEvent(new Event("input", { bubbles: true }));
  radio.dispatchEvent(new Event("change", { bubbles: true }));
}

function town(name) {
  const { columns, rows } = data.grid, cell = 22, svg = canvas(columns * cell + 2, rows * cell + 2, `Prior: ${name}`);
  const masses = data.priors[name], most = Math.max(...masses);
  masses.forEach((mass, index) => {
    const column = index % columns, row = rows - 1 - Math.floor(index / columns);
    svg.append(element("rect", {
      x: column * cell + 1, y: row * cell + 1, width: cell - 2, height: cell - 2, rx: 2,
      fill: mass ? css("heat") : css("wash"), "fill-opacity": mass ? 0.25 + 0.75 * (mass / most) : 1,
    }));
  });
  // Cloaking reports the zone: three by three cells.
  for (let line = 0; line <= columns; line += data.zone[0]) svg.append(element("line", { x1: line * cell + 1, x2: line * cell + 1, y1: 1, y2: rows * cell + 1, stroke: css("soft"), "stroke-width": 1 }));
  for (let line = 0; line <= rows; line += data.zone[1]) svg.append(element("line", { y1: line * cell + 1, y2: line * cell + 1, x1: 1, x2: columns * cell + 1, stroke: css("soft"), "stroke-width": 1 }));
  return svg;
}

function profile(row) {
  const table = document.createElement("table"), body = document.createElement("tbody");
  for (const [key, measure] of Object.entries(data.measures)) {
    const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.scope = "row";
    head.textContent = `${measure.title} (${measure.good})`;
    cell.textContent = number(row[key], measure.unit);
    line.append(head, cell);
    body.append(line);
  }
  table.append(body);
  return table;
}

function draw() {
  if (!data) return;
  const prior = chosen("prior"), mechanism = $("mechanism").value, equalised = chosen("equalised"), measure = $("measure").value;
  const { title, unit, good } = data.measures[measure];
  const rows = data.rows.filter((row) => row.equalised === equalised);
  const here = rows.filter((row) => row.prior === prior), row = here.find((one) => one.mechanism === mechanism);
  const acrossMechanisms = here.map((one) => ({ key: one.mechanism, name: one.mechanism + (one.knows_prior ? " *" : ""), value: one[measure], strong: one.mechanism === mechanism }));
  const acrossPriors = rows.filter((one) => one.mechanism === mechanism).map((one) => ({ key: one.prior, name: one.prior, value: one[measure], strong: one.prior === prior }));
  const pictured = card("Where people usually are", prior, town(prior));
  pictured.classList.add("town");
  $("comparison").replaceChildren(
    card(`${upper(title)} of each mechanism`, `People: ${prior}. ${upper(good)}. A star: built for this very prior.`, bars(`${title} by mechanism`, acrossMechanisms, unit, chooseMechanism), true),
    pictured,
    card(upper(mechanism), `People: ${prior}. All that is measured.`, profile(row)),
    card(`${upper(mechanism)} under each prior`, `${upper(title)}: ${good}.`, bars(`${title} by prior`, acrossPriors, unit, choosePrior), true),
  );
  const laplace = here.find((one) => one.mechanism === USUAL).adversary_error, cloaking = here.find((one) => one.mechanism === "cloaking").adversary_error;
  put("compare-finding", finding(prior, laplace, cloaking));
}

const upper = (text) => text[0].toUpperCase() + text.slice(1);

function finding(prior, laplace, cloaking) {
  const [a, b] = [Math.round(laplace), Math.round(cloaking)];
  if (a === b) return `${upper(prior)}: cloaking and planar Laplace both keep the observer ${a} m off.`;
  const [better, worse] = laplace > cloaking ? ["planar Laplace", "cloaking"] : ["cloaking", "planar Laplace"];
  return `${upper(prior)}: ${better} keeps the observer ${Math.max(a, b)} m off, ${worse} ${Math.min(a, b)} m.`;
}

function radios(holder, name, values, usual) {
  for (const value of values) {
    const label = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, { type: "radio", name, value });
    if (value === usual) input.setAttribute("checked", "");
    label.append(input, ` ${value}`);
    holder.append(label);
  }
}

async function load() {
  const told = await get("/api/compare");
  data = told;
  radios($("compare-priors"), "prior", Object.keys(data.priors), OPENS_WITH);
  for (const name of data.mechanisms) $("mechanism").add(new Option(name, name, name === USUAL, name === USUAL));
  for (const [key, measure] of Object.entries(data.measures)) $("measure").add(new Option(measure.title, key));
  adopt($("part-compare"));
  app.remember();
  $("part-compare").addEventListener("input", draw);
}

// Whoever comes twice while it loads waits for the same answer.
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
  init(shell) { app = shell; mechanisms.init(shell); },
  enter() { mechanisms.enter(); return enter(); },
  leave: mechanisms.leave,
  update: redraw,
  redraw,
};
