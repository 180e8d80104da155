// Ask again: the average of fresh answers walks home while the budget runs down.

import { asker, post, Refused, retry, say } from "./ask.js";
import { canvas, element, roundUp } from "./chart.js";
import { clearOf, colour, diamond, fit, line, speck } from "./map.js";
import { many, metres, percent, put, valued } from "./words.js";

const $ = (id) => document.getElementById(id);
const PAUSE = 45;
let app = null,
  active = false,
  running = 0;
let person = "",
  answers = [],
  averages = [],
  refused = null,
  remaining = 1,
  together = "";

// What the dial means, before anything is asked for.
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const REACH = 4.744; // 95 % of reports fall within this many 1 / epsilon
const askPromise = asker("/api/promise", (result) => {
  if (!active) return;
  app.promise({ promise: result });
  fit(app.me.toBounds((2 * REACH) / result.epsilon), true);
});

const mode = () => document.querySelector("input[name=answer]:checked").value;

function reset() {
  running += 1;
  // The first run repeats that of the link, each further one has noise of its own.
  if (answers.length) app.newSeed();
  person = Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(36).padStart(2, "0")).join(
    "",
  );
  answers = [];
  averages = [];
  refused = null;
  remaining = 1;
  together = "";
  valued("budget", `${$("budget").value} reports`);
  say(null);
  draw();
}

async function askFor(count) {
  const mine = running;
  const asked = {
    ...app.place(),
    ...app.privacy(),
    person,
    budget: Number($("budget").value),
    answer: mode(),
    count,
    seed: app.seed,
  };
  let result;
  try {
    result = await post("/api/again", asked);
  } catch (error) {
    if (error instanceof Refused) app.refused(asked);
    throw error;
  }
  if (mine !== running) return false;
  app.promise(result);
  app.accepted(asked);
  for (const at of result.reports) {
    answers.push(L.latLng(at));
    const n = answers.length,
      last = averages.at(-1)?.at ?? L.latLng(0, 0);
    const average = L.latLng(last.lat + (at[0] - last.lat) / n, last.lng + (at[1] - last.lng) / n);
    averages.push({ at: average, error: app.me.distanceTo(average) });
  }
  refused = result.refused;
  remaining = result.remaining;
  together = result.together;
  draw();
  return !refused;
}

async function guarded(work, again) {
  const mine = running;
  try {
    await work();
    say(null);
  } catch (error) {
    draw();
    if (
      !retry(error, () => {
        if (mine === running) again();
      })
    )
      say(error.message);
  }
}

const askOnce = () => guarded(() => askFor(1), askOnce);

async function askAll() {
  reset();
  const mine = running,
    most = Number($("budget").value) + 1;
  await guarded(async () => {
    // The same report never costs again, so it is never refused: ask as often as fresh noise could.
    // With reduced motion, all answers at once.
    if (still()) {
      await askFor(most);
      return;
    }
    for (let asked = 0; asked < most && mine === running && active; asked += 1) {
      if (!(await askFor(1))) break;
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }, askAll);
}

function draw() {
  if (!active) return;
  const layer = app.layer.clearLayers();
  for (const at of answers.slice(0, -1)) speck(at, "report", { fillOpacity: 0.45 }).addTo(layer);
  if (averages.length > 1)
    line(
      averages.map((average) => average.at),
      "remapped",
      { weight: 1.5 },
    ).addTo(layer);
  app.drawMe();
  if (answers.length) {
    speck(answers.at(-1), "report", { radius: 6, fillOpacity: 1 }).addTo(layer);
    const { at } = averages.at(-1),
      marked = clearOf(at, [app.me]);
    if (!marked.equals(at)) line([at, marked], "remapped", { weight: 1.5 }).addTo(layer);
    diamond(marked, "average")
      .bindTooltip("average", { permanent: true, direction: "right", offset: [10, 0] })
      .addTo(layer);
  }
  put("answers", answers.length);
  put("average-error", averages.length ? metres(averages.at(-1).error) : "–");
  $("meter").value = remaining;
  put("meter-out", percent(remaining));
  put("again-together", together);
  const verdict = $("again-verdict");
  verdict.classList.toggle("refused", Boolean(refused));
  verdict.textContent =
    refused ??
    (mode() === "same" && answers.length > 1
      ? "Always the same answer: the average learns nothing, and only the first one cost."
      : "");
  plot();
  app.describe(
    answers.length
      ? `${many(answers.length, "answer")}: their average is ${metres(averages.at(-1).error)} from you, and ${percent(remaining)} of the budget is left.`
      : "No answers yet.",
    `${verdict.textContent} ${together}`,
  );
}

function plot() {
  const svg = canvas(340, 130, "Error of the average against the number of answers");
  const most = Math.max(Number($("budget").value), answers.length),
    left = 38,
    right = 332,
    bottom = 106,
    top = 14;
  const high = roundUp(Math.max(50, ...averages.map((average) => average.error)));
  const x = (n) => left + ((n - 1) / Math.max(1, most - 1)) * (right - left),
    y = (error) => bottom - (error / high) * (bottom - top);
  for (const share of [0, 0.5, 1]) {
    svg.append(element("line", { x1: left, x2: right, y1: y(share * high), y2: y(share * high), class: "axis" }));
    svg.append(
      element(
        "text",
        { x: left - 6, y: y(share * high) + 4, "text-anchor": "end", class: "soft" },
        Math.round(share * high),
      ),
    );
  }
  svg.append(element("text", { x: left, y: 124, class: "soft" }, "1 answer"));
  svg.append(element("text", { x: right, y: 124, "text-anchor": "end", class: "soft" }, `${most} answers`));
  svg.append(element("text", { x: right, y: 11, "text-anchor": "end", class: "soft" }, "metres from home"));
  if (averages.length) {
    svg.append(
      element("polyline", {
        class: "curve",
        stroke: colour.remapped,
        points: averages.map((average, n) => `${x(n + 1).toFixed(1)},${y(average.error).toFixed(1)}`).join(" "),
      }),
    );
    svg.append(
      element("circle", { r: 3.5, fill: colour.remapped, cx: x(averages.length), cy: y(averages.at(-1).error) }),
    );
  }
  $("again-plot").replaceChildren(svg);
}

export const again = {
  hint: "Drag the pin to move home",
  init(shell) {
    app = shell;
    $("ask-once").addEventListener("click", askOnce);
    $("ask-all").addEventListener("click", askAll);
    $("ask-reset").addEventListener("click", reset);
    $("budget").addEventListener("input", reset);
    for (const radio of document.querySelectorAll("input[name=answer]")) radio.addEventListener("change", reset);
  },
  enter() {
    active = true;
    reset();
    askPromise(app.privacy());
  },
  leave() {
    active = false;
    running += 1;
  },
  update(_, why) {
    reset();
    if (why === "privacy") askPromise(app.privacy());
  },
  redraw: draw,
};
