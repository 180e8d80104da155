// Asked again and again: each answer changes the observer's belief, until one building glows or the remedy holds.

import { gauge } from "../js/gauge.js";
import { put } from "../js/words.js";
import { $, words } from "./page.js";
import { posterior } from "./posterior.js";
import { remedies } from "./remedies.js";
import { scene } from "./scene.js";
import { homes } from "./town_map.js";
import { watcher } from "./watcher.js";

export const play = (() => {
  const SURE = 0.9, MOST = 400;
  const remedy = () => document.querySelector("input[name=remedy]:checked").value;
  let run = null, playing = 0, free = false;

  function begin(kind) {
    const epsilon = scene.noiseEpsilon();
    const answerer = {
      fresh: () => remedies.fresh(epsilon), same: () => remedies.same(epsilon, 25),
      budget: () => remedies.budget(epsilon, Number($("budget").value)), session: () => remedies.session(epsilon),
    }[kind]();
    const watch = (places) => (kind === "session" ? watcher.ofSession(places, epsilon, answerer.limit) : watcher.ofReports(places, epsilon));
    run = { kind, answerer, watch, observer: watch(homes), asked: 0, seen: [], answers: [], refused: false, found: false };
    look();
  }

  function look() {
    run.belief = scene.beliefOf(run.observer.logs());
    run.best = run.belief.indexOf(Math.max(...run.belief));
    run.found ||= run.belief[run.best] >= SURE && run.best === scene.state.me.building;
  }

  function ask() {
    const answer = run.answerer.answer(scene.state.me);
    run.asked += 1;
    run.refused = answer === null;
    if (run.refused) return;
    if (answer !== run.answers.at(-1)) run.answers.push(answer);
    run.seen.push(answer);
    run.observer.see(answer);
    look();
  }

  // Fresh noise ends with the building; a remedy is asked a hundred times.
  const over = () => run.found || run.refused || run.asked >= (run.kind === "fresh" ? MOST : 100);

  function verdict() {
    if (!run.asked) return ["Press Play: the app asks again and again.", ""];
    const sure = scene.sure(run.belief), paid = Math.round(run.answerer.paid());
    if (run.found) return [`Found after ${words.many(run.asked, "report")}: the observer is ${words.percent(run.belief[run.best])} sure of one building, and it is yours.`, "found"];
    if (run.refused) return [`Refused: the budget of ${words.many(paid, "report")} is spent, and nothing more is told. ${sure}`, "safe"];
    if (run.kind === "same") return [`Asked ${words.many(run.asked, "time")}, always the same answer, paid once. ${sure}`, over() ? "safe" : ""];
    if (run.kind === "session") return [`Asked ${words.many(run.asked, "time")}, ${words.many(run.answers.length, "fresh report")}. ${sure}`, over() ? "safe" : ""];
    return [`${words.many(run.asked, "report")}. ${sure}`, ""];
  }

  function draw() {
    const reports = run.answers.map((at) => ({ kind: "speck", at, colour: "report" }));
    const last = run.answers.length ? [{ kind: "dot", at: run.answers.at(-1), colour: "report" }] : [];
    const keep = run.answers.slice(-1), [sentence, mood] = verdict();
    const there = free ? { there: { at: scene.state.there, text: "there", move: (at) => { scene.state.there = at; draw(); } } } : {};
    scene.yours.show({ marks: [...reports, ...last], keep, pins: { ...there, you: scene.you(() => restart()) }, words: `You and ${words.many(run.answers.length, "report")} around you.` });
    // Once they have found you the building is what counts.
    const faint = reports.map((mark) => ({ ...mark, fill: 0.2 })), here = { kind: "circle", at: scene.state.me, radius: 45, colour: "missed", text: "found", fill: 0 };
    scene.theirs.show({ belief: run.belief, marks: run.found ? [...faint, here] : [...reports, ...last], keep, words: `What the observer believes. ${scene.sure(run.belief)}` });
    $("legend").hidden = false;
    if (free) odds();
    scene.tell(sentence, mood);
    $("play").disabled = over();
    $("ask-once").disabled = over();
    put("play", playing ? "Pause" : "Play");
    document.documentElement.dataset.playing = playing ? "yes" : "no";
  }

  // Free play: the odds between two places after all that was seen, whose stops move apart with each payment. A session
  // pays for its tests, too, and "still here" tells something.
  function odds() {
    const { me, there } = scene.state, two = run.watch({ x: [me.x, there.x], y: [me.y, there.y], mass: [0.5, 0.5] });
    run.seen.forEach(two.see);
    const [here, away] = two.logs();
    const limit = posterior.oddsLimit(me, there, Math.max(1, run.answerer.paid()), scene.epsilon());
    $("gauge").replaceChildren(gauge({ change: Math.exp(here - away), limit, left: "there", right: "here" }));
  }

  function pause() { playing = 0; }
  function restart(kind = run.kind) { pause(); begin(kind); draw(); }
  function open(kind, withThere) { free = withThere; restart(kind); }

  // Slowly first, so that each report can be seen; whoever wants no motion sees the end at once.
  function start() {
    if (playing) { pause(); draw(); return; }
    const mine = (playing = Math.random());
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const tick = () => {
      if (mine !== playing) return;
      const at_once = still ? Infinity : run.asked < 12 ? 1 : run.asked < 40 ? 2 : 6;
      for (let n = 0; n < at_once && !over(); n += 1) ask();
      if (over()) pause();
      draw();
      if (playing) setTimeout(tick, run.asked < 6 ? 420 : 120);
    };
    tick();
  }
  const once = () => { pause(); ask(); draw(); };

  return { remedy, open, restart, start, once, pause, draw };
})();
