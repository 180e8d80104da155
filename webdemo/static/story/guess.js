// A game for a class: a person hides, the class guesses, and so does an observer who computes.

import { homes, noise, posterior } from "./core.js";
import { $, words } from "./page.js";
import { scene } from "./scene.js";
import { say } from "./texts.js";
import { TownMap } from "./town_map.js";

export const guess = (() => {
  const rounds = [];
  let hidden = null,
    reports = [],
    guesses = [],
    revealed = false;

  function hide() {
    noise.seed(scene.state.seed);
    let left = noise.uniform(),
      i = 0;
    while (i < homes.mass.length - 1 && (left -= homes.mass[i]) > 0) i += 1;
    hidden = scene.homeAt(i);
    reports = [noise.report(hidden, scene.noiseEpsilon())];
    guesses = [];
    revealed = false;
    $("outcomes").hidden = !rounds.length;
    draw();
  }
  function again() {
    scene.reseed();
    hide();
  }
  function more() {
    if (revealed) return;
    reports.push(noise.report(hidden, scene.noiseEpsilon()));
    draw();
  }

  // Without a pointer: a guess where the report is, to be moved with the arrow keys.
  function add(at = { ...reports.at(-1) }) {
    if (revealed) return;
    guesses.push(TownMap.within(at));
    draw();
  }
  function addHere() {
    add();
    document.querySelector("#yours .handle-guess")?.focus();
  }

  function observed() {
    const logs = posterior.afterReports(posterior.before(homes), homes, reports, scene.noiseEpsilon());
    const weights = posterior.weights(logs),
      points = Array.from(homes.x, (x, i) => ({ x, y: homes.y[i] }));
    return { belief: scene.beliefOf(logs), best: posterior.middle(points, Array.from(weights), 1) };
  }

  function draw() {
    const { belief, best } = observed(),
      shown = revealed || $("show-belief").checked;
    const marks = reports.map((at, i) => ({
      kind: "dot",
      at,
      colour: "report",
      text: i === reports.length - 1 ? "report" : "",
    }));
    // Earlier guesses are rings with numbers, so that what lies below is seen.
    marks.push(...guesses.slice(0, -1).map((at, i) => ({ kind: "ring", at, colour: "remapped", text: String(i + 1) })));
    if (revealed) marks.push({ kind: "diamond", at: best, colour: "heat", text: "the observer’s guess" });
    const last = guesses.at(-1),
      name = guesses.length > 1 ? `guess ${guesses.length}` : "your guess";
    const pins = {
      ...(last
        ? {
            guess: {
              at: last,
              text: name,
              move: (at) => {
                if (!revealed) {
                  guesses[guesses.length - 1] = TownMap.within(at);
                  draw();
                }
              },
            },
          }
        : {}),
      ...(revealed ? { you: { at: hidden, text: "I was here", move: () => {} } } : {}),
    };
    scene.yours.show({
      belief: shown ? belief : null,
      marks,
      pins,
      keep: reports,
      words: revealed
        ? "The hidden place, the guesses and the observer’s."
        : `${words.many(reports.length, "report")} of a person who hides, and ${words.many(guesses.length, "guess", "guesses")}.`,
    });
    $("legend").hidden = !shown;
    for (const id of ["more", "add-guess"]) $(id).setAttribute("aria-disabled", revealed);
    $("reveal").setAttribute("aria-disabled", revealed || !guesses.length);
    if (!revealed) scene.tell(guesses.length ? say.guesses(guesses.length) : say.click());
    scores();
  }

  function scores() {
    if (!rounds.length) return;
    const mean = (who) => words.metres(rounds.reduce((sum, round) => sum + round[who], 0) / rounds.length),
      last = rounds.at(-1);
    scene.table(
      words.many(rounds.length, "round"),
      ["Off by", "last", "on average"],
      [
        ["The best guess", words.metres(last.best), mean("best")],
        ["The middle guess", words.metres(last.middle), mean("middle")],
        ["The observer", words.metres(last.observer), mean("observer")],
        ["The report itself", words.metres(last.report), mean("report")],
      ],
    );
  }

  function reveal() {
    if (revealed || !guesses.length) return;
    const { best, belief } = observed(),
      far = (at) => posterior.apart(hidden, at),
      offs = guesses.map(far).sort((a, b) => a - b),
      observer = far(best);
    revealed = true;
    rounds.push({ best: offs[0], middle: offs[(offs.length - 1) >> 1], observer, report: far(reports.at(-1)) });
    draw();
    scene.tell(
      say.revealed({
        best: offs[0],
        count: offs.length,
        observer,
        closer: offs.filter((off) => off < observer).length,
        belief: belief[hidden.building],
      }),
    );
  }

  function open() {
    scene.setUp({ boxes: ["dial", "guess"], maps: 1, click: add });
    if (hidden) draw();
    else hide();
  }
  return { open, hide, again, more, addHere, reveal, draw };
})();
