// What all parts of the story share: you, the other place, the dial, one report, and the two maps.

import { put } from "../js/words.js";
import { homes, noise, posterior } from "./core.js";
import { $, words } from "./page.js";
import { say } from "./texts.js";
import { TownMap } from "./town_map.js";

export const scene = (() => {
  const FACTOR = 4;
  const BOXES = ["dial", "near", "day", "bet", "remedy", "budget", "way", "gauge", "play", "draw", "guess", "chart"];
  const SOON = 400; // milliseconds of rest before a finding is read aloud

  const nearestHome = (at, allowed = (_) => true) => {
    let best = -1,
      least = Infinity;
    homes.x.forEach((x, i) => {
      const far = Math.hypot(x - at.x, homes.y[i] - at.y);
      if (far < least && allowed(i)) {
        best = i;
        least = far;
      }
    });
    return best;
  };
  const homeAt = (i) => ({ x: homes.x[i], y: homes.y[i], building: homes.building[i] });

  const state = {
    me: homeAt(nearestHome({ x: TOWN.home[0] / 10, y: TOWN.home[1] / 10 })),
    there: null,
    dice: null,
    seed: 0,
  };
  state.there = homeAt(nearestHome({ x: state.me.x + 100, y: state.me.y + 60 }));

  // All of a run follows from its seed, so that a link repeats it.
  function reseed(seed = crypto.getRandomValues(new Uint32Array(1))[0] % 1000000) {
    state.seed = seed;
    noise.seed(seed);
    state.dice = noise.draw();
  }

  let listener = (_) => {};
  const yours = new TownMap(document.querySelector("#yours .ground"), { click: (at) => listener(at) });
  const theirs = new TownMap(document.querySelector("#theirs .ground"), { bar: false });

  const radius = () => TOWN.stops[Number($("dial").value)];
  // The promise; and the noise that keeps it, a little wider as the library's: true distances lie on an ellipsoid.
  const epsilon = () => noise.epsilonFor(FACTOR, radius());
  const noiseEpsilon = () => epsilon() / TOWN.margin;
  const report = () => noise.report(state.me, noiseEpsilon(), state.dice);

  // People are in buildings: you move from one place in a building to another.
  function moveMe(at) {
    const from = state.me,
      step = { x: at.x - from.x, y: at.y - from.y };
    let to = nearestHome(at);
    // A key's small step leads at least to the next place in its direction.
    if (homes.x[to] === from.x && homes.y[to] === from.y && Math.hypot(step.x, step.y) > 5) {
      const ahead = nearestHome(
        from,
        (i) =>
          (homes.x[i] - from.x) * step.x + (homes.y[i] - from.y) * step.y >
          0.7 * Math.hypot(step.x, step.y) * Math.hypot(homes.x[i] - from.x, homes.y[i] - from.y),
      );
      if (ahead >= 0) to = ahead;
    }
    state.me = homeAt(to);
  }
  const moveThere = (at) => {
    state.there = TownMap.within(at);
  };

  function setUp({ boxes, maps, click = null }) {
    for (const box of BOXES) $(`${box}-box`).hidden = box === "chart" || !boxes.includes(box);
    $("theirs").hidden = maps < 2;
    put("caption", maps < 2 ? "The town" : "What you know");
    $("outcomes").hidden = true;
    $("legend").hidden = true;
    listener = click ?? (() => {});
    yours.grounded = theirs.grounded = true;
  }

  function labels() {
    $("dial").setAttribute("aria-valuetext", words.metres(radius()));
    $("stops").replaceChildren(
      ...TOWN.stops.map((stop) => {
        const span = document.createElement("span");
        span.textContent = words.metres(stop).replace(" ", "\u00a0");
        span.className = stop === radius() ? "chosen" : "";
        return span;
      }),
    );
    put("promise", say.promise(radius(), FACTOR, noise.meanRadius(noiseEpsilon())));
    put("interest-out", words.metres(Number($("interest").value)));
    put("budget-out", words.many(Number($("budget").value), "report"));
    for (const id of ["interest", "budget"]) $(id).setAttribute("aria-valuetext", $(`${id}-out`).textContent);
  }

  const beliefOf = (logs) => posterior.ofBuildings(posterior.weights(logs), homes, TownMap.buildings.length);
  const countOf = (belief) => posterior.likeliest(belief, 0.9).length;
  const sure = (belief) => say.sure(countOf(belief));

  // What was found, for the eye; read aloud once, when nothing changes any more.
  let soon = 0;
  function tell(sentence, mood = "", { quiet = false } = {}) {
    put("finding", sentence);
    $("finding").className = `finding ${mood}`;
    put("said", sentence);
    clearTimeout(soon);
    if (!quiet)
      soon = setTimeout(() => {
        if ($("announce").textContent !== $("finding").textContent) put("announce", sentence);
      }, SOON);
  }
  function chart(drawing, note) {
    $("chart-box").hidden = false;
    $("chart").replaceChildren(...(drawing ? [drawing] : []));
    put("chart-note", note);
  }
  function table(caption, head, rows) {
    $("outcomes").hidden = false;
    put("outcomes-caption", caption);
    const cell = (name, text, scope) => {
      const made = document.createElement(name);
      made.textContent = text;
      if (scope) made.scope = scope;
      return made;
    };
    $("outcomes-head").replaceChildren(...head.map((text) => cell("th", text, "col")));
    $("outcomes-rows").replaceChildren(
      ...rows.map(([name, ...values]) => {
        const row = document.createElement("tr");
        row.append(cell("th", name, "row"), ...values.map((value) => cell("td", value)));
        return row;
      }),
    );
  }
  const you = (changed) => ({
    at: state.me,
    text: "you",
    move: (at) => {
      moveMe(at);
      changed();
    },
  });

  return {
    FACTOR,
    state,
    yours,
    theirs,
    reseed,
    epsilon,
    noiseEpsilon,
    report,
    homeAt,
    nearestHome,
    moveMe,
    moveThere,
    setUp,
    labels,
    beliefOf,
    countOf,
    sure,
    tell,
    chart,
    table,
    you,
  };
})();
