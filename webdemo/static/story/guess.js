// Teacher mode: somebody hides, the class guesses, and so does an observer who computes.

import { noise } from "./noise.js";
import { $, words } from "./page.js";
import { posterior } from "./posterior.js";
import { scene } from "./scene.js";
import { homes } from "./town_map.js";

export const guess = (() => {
  const rounds = [];
  let hidden = null, reports = [], clicked = null, revealed = false;

  function hide() {
    let left = noise.uniform(), i = 0;
    while (i < homes.mass.length - 1 && (left -= homes.mass[i]) > 0) i += 1;
    hidden = scene.homeAt(i);
    // A guess begins where the report is: a click, a hand or the arrow keys make it better.
    reports = [noise.report(hidden, scene.noiseEpsilon())];
    clicked = { ...reports[0] };
    revealed = false;
    draw();
  }
  function more() {
    reports.push(noise.report(hidden, scene.noiseEpsilon()));
    draw();
  }

  function observed() {
    const logs = posterior.afterReports(posterior.before(homes), homes, reports, scene.noiseEpsilon());
    const weights = posterior.weights(logs), points = Array.from(homes.x, (x, i) => ({ x, y: homes.y[i] }));
    return { belief: scene.beliefOf(logs), best: posterior.middle(points, weights) };
  }

  function draw() {
    const { belief, best } = observed(), shown = revealed || $("show-belief").checked;
    /** @type {object[]} */
    const marks = reports.map((at) => ({ kind: "dot", at, colour: "report", text: reports.length === 1 && !revealed ? "report" : "" }));
    if (revealed) {
      marks.push({ kind: "line", at: hidden, to: clicked, colour: "truth" }, { kind: "diamond", at: best, colour: "remapped", text: "the observer’s guess" }, { kind: "dot", at: hidden, colour: "truth" });
    }
    const mine = revealed ? { you: { at: hidden, text: "I was here", move: () => {} } } : {};
    const pins = { ...mine, guess: { at: clicked, text: "your guess", move: (at) => { if (!revealed) { clicked = at; draw(); } } } };
    scene.yours.show({ belief: shown ? belief : null, marks, pins, keep: reports, words: revealed ? "The hidden place, your guess and the observer’s." : `${words.many(reports.length, "report")} of somebody who hides.` });
    $("legend").hidden = !shown;
    $("reveal").disabled = revealed;
    $("more").disabled = revealed;
    if (!revealed) scene.tell("Click the map or drag your guess, then reveal.");
    scores();
  }

  function scores() {
    if (!rounds.length) return;
    const mean = (who) => words.metres(rounds.reduce((sum, round) => sum + round[who], 0) / rounds.length);
    scene.table(words.many(rounds.length, "round"), ["Off by", "last", "on average"], [
      ["You", words.metres(rounds.at(-1).you), mean("you")], ["The observer", words.metres(rounds.at(-1).observer), mean("observer")], ["The report itself", words.metres(rounds.at(-1).report), mean("report")],
    ]);
  }

  function reveal() {
    const { best, belief } = observed(), far = (at) => posterior.apart(hidden, at);
    revealed = true;
    rounds.push({ you: far(clicked), observer: far(best), report: far(reports.at(-1)) });
    draw();
    const better = far(clicked) < far(best) ? "You were closer, by luck or by insight." : "The observer was closer.";
    scene.tell(`You are off by ${words.metres(far(clicked))}, the observer by ${words.metres(far(best))}. ${better} Its belief in the right building: ${words.percent(belief[hidden.building])}.`);
  }

  function open() {
    scene.setUp({ boxes: ["dial", "guess"], maps: 1, click: (at) => { if (!revealed) { clicked = at; draw(); } } });
    if (hidden) draw();
    else hide();
  }
  return { open, hide, more, reveal, draw };
})();
