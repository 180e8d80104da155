// What all parts of the story share: you, the other place, the dial, one report, and the two maps.

import { put } from "../js/words.js";
import { noise } from "./noise.js";
import { $, words } from "./page.js";
import { posterior } from "./posterior.js";
import { TownMap, homes } from "./town_map.js";

export const scene = (() => {
  const FACTOR = 4;
  const STOPS = ["street", "block", "neighbourhood", "town"].map((name, i) => ({ name, radius: TOWN.stops[i] }));
  const BOXES = ["dial", "near", "remedy", "budget", "way", "gauge", "play", "draw", "guess"];

  const nearestHome = (at, allowed = (_) => true) => {
    let best = -1, least = Infinity;
    homes.x.forEach((x, i) => {
      const far = Math.hypot(x - at.x, homes.y[i] - at.y);
      if (far < least && allowed(i)) { best = i; least = far; }
    });
    return best;
  };
  const homeAt = (i) => ({ x: homes.x[i], y: homes.y[i], building: homes.building[i] });

  const state = { me: homeAt(nearestHome({ x: TOWN.home[0] / 10, y: TOWN.home[1] / 10 })), dice: noise.draw() };
  state.there = homeAt(nearestHome({ x: state.me.x + 100, y: state.me.y + 60 }));

  let listener = (_) => {};
  const yours = new TownMap(document.querySelector("#yours .ground"), { click: (at) => listener(at) });
  const theirs = new TownMap(document.querySelector("#theirs .ground"), { bar: false });

  const stop = () => STOPS[Number($("dial").value)];
  // The promise; and the noise that keeps it, a little wider as the library's: true distances lie on an ellipsoid.
  const epsilon = () => noise.epsilonFor(FACTOR, stop().radius);
  const noiseEpsilon = () => epsilon() / TOWN.margin;
  const report = () => noise.report(state.me, noiseEpsilon(), state.dice);

  // People are in buildings: you move from one place in a building to another.
  function moveMe(at) {
    const from = state.me, step = { x: at.x - from.x, y: at.y - from.y };
    let to = nearestHome(at);
    // A key's small step leads at least to the next place in its direction.
    if (homes.x[to] === from.x && homes.y[to] === from.y && Math.hypot(step.x, step.y) > 5) {
      const ahead = nearestHome(from, (i) => (homes.x[i] - from.x) * step.x + (homes.y[i] - from.y) * step.y > 0.7 * Math.hypot(step.x, step.y) * Math.hypot(homes.x[i] - from.x, homes.y[i] - from.y));
      if (ahead >= 0) to = ahead;
    }
    state.me = homeAt(to);
  }

  function setUp({ boxes, maps, click = null }) {
    for (const box of BOXES) $(`${box}-box`).hidden = !boxes.includes(box);
    $("theirs").hidden = maps < 2;
    put("caption", maps < 2 ? "The town" : "What you know");
    $("outcomes").hidden = true;
    $("legend").hidden = true;
    listener = click ?? (() => {});
    yours.grounded = theirs.grounded = true;
  }

  function labels() {
    const { name, radius } = stop();
    $("dial").setAttribute("aria-valuetext", `${name}, ${radius} m`);
    $("stops").replaceChildren(...STOPS.map((each) => {
      const span = document.createElement("span");
      span.textContent = each.name;
      span.className = each.name === name ? "chosen" : "";
      return span;
    }));
    put("promise", `Places ${radius} m apart: the odds change ${FACTOR} times at most. A report is off by ${words.metres(noise.meanRadius(noiseEpsilon()))} on average.`);
    put("interest-out", words.metres(Number($("interest").value)));
    put("budget-out", words.many(Number($("budget").value), "report"));
    for (const id of ["interest", "budget"]) $(id).setAttribute("aria-valuetext", $(`${id}-out`).textContent);
  }

  const beliefOf = (logs) => posterior.ofBuildings(posterior.weights(logs), homes, TownMap.buildings.length);
  function sure(belief) {
    const count = posterior.likeliest(belief, 0.9).length;
    return count === 1 ? "90 % sure: this one building." : `90 % sure: one of these ${count} buildings.`;
  }

  function tell(sentence, mood = "") {
    put("finding", sentence);
    $("finding").className = `finding ${mood}`;
  }
  function table(caption, head, rows) {
    $("outcomes").hidden = false;
    put("outcomes-caption", caption);
    const cell = (name, text, scope) => { const made = document.createElement(name); made.textContent = text; if (scope) made.scope = scope; return made; };
    $("outcomes-head").replaceChildren(...head.map((text) => cell("th", text, "col")));
    $("outcomes-rows").replaceChildren(...rows.map(([name, ...values]) => {
      const row = document.createElement("tr");
      row.append(cell("th", name, "row"), ...values.map((value) => cell("td", value)));
      return row;
    }));
  }
  const you = (changed) => ({ at: state.me, text: "you", move: (at) => { moveMe(at); changed(); } });

  return { FACTOR, state, yours, theirs, stop, epsilon, noiseEpsilon, report, homeAt, nearestHome, moveMe, setUp, labels, beliefOf, sure, tell, table, you };
})();
