// Asked again and again: each answer changes the observer's belief, until one building is left or the remedy holds.

import { gauge } from "../js/gauge.js";
import { put } from "../js/words.js";
import { background } from "./background.js";
import { charts } from "./charts.js";
import { homes, noise, posterior, remedies, runs, watcher } from "./core.js";
import { $, words } from "./page.js";
import { scene } from "./scene.js";
import { say } from "./texts.js";

export const play = (() => {
  const RUNS = 200,
    CELL = 25,
    ONE_FRAME = 400;
  const remedy = () => document.querySelector("input[name=remedy]:checked").value;
  let run = null,
    playing = 0,
    free = false;

  function begin(kind) {
    const epsilon = scene.noiseEpsilon();
    noise.seed(scene.state.seed);
    const answerer = {
      fresh: () => remedies.fresh(epsilon),
      same: () => remedies.same(epsilon, CELL),
      budget: () => remedies.budget(epsilon, Number($("budget").value)),
      session: () => remedies.session(epsilon),
    }[kind]();
    const watch = (places) =>
      kind === "session"
        ? watcher.ofSession(places, epsilon, answerer.test, answerer.limit)
        : watcher.ofReports(places, epsilon);
    // What was seen: each report, and how often in a row.
    run = {
      kind,
      answerer,
      watch,
      observer: watch(homes),
      asked: 0,
      seen: [],
      unread: 0,
      refused: false,
      found: false,
      history: [],
      typical: null,
    };
    look();
  }

  function look() {
    const last = run.seen.at(-1);
    if (last && run.unread) run.observer.see(last.report, run.unread);
    run.unread = 0;
    run.belief = scene.beliefOf(run.observer.logs());
    run.best = run.belief.indexOf(Math.max(...run.belief));
    run.left = scene.countOf(run.belief);
    run.found ||= run.belief[run.best] >= runs.SURE && run.best === scene.state.me.building;
    if (run.history.at(-1)?.[0] === run.asked) run.history.pop();
    if (run.asked) run.history.push([run.asked, run.left]);
  }

  function ask(count) {
    for (let i = 0; i < count && !over(); i += 1) {
      const answer = run.answerer.answer(scene.state.me);
      run.asked += 1;
      run.refused = answer === null;
      if (run.refused) break;
      const last = run.seen.at(-1);
      if (last?.report !== answer) {
        if (run.unread) look();
        run.seen.push({ report: answer, times: 0 });
      }
      run.seen.at(-1).times += 1;
      run.unread += 1;
      if (run.kind === "fresh" || run.asked >= 1.2 * (run.history.at(-1)?.[0] ?? 0)) look();
    }
    look();
  }

  // Fresh noise ends with the building; a remedy is asked for a year.
  const over = () => run.found || run.refused || run.asked >= (run.kind === "fresh" ? runs.MOST : runs.YEAR);

  function verdict() {
    if (!run.asked) return say.press();
    const { asked, left: count } = run,
      paid = Math.round(run.answerer.paid());
    if (run.found) return say.found(asked, run.belief[run.best]);
    if (run.refused) return say.refused(paid, count);
    if (run.kind === "same") return say.same(asked, count);
    if (run.kind === "session")
      return say.session({ asked, made: run.answerer.made(), paid, count, first: run.history[0][1] });
    return say.fresh(asked, count);
  }
  // By what is left of the belief, not by the remedy.
  function mood() {
    if (!run.asked) return "";
    if (run.left === 1) return "found";
    return run.left < run.history[0][1] / 2 ? "risky" : over() ? "safe" : "";
  }

  function draw() {
    const answers = run.seen.map(({ report }) => report),
      reports = answers.map((at) => ({ kind: "speck", at, colour: "report" }));
    const last = answers.length ? [{ kind: "dot", at: answers.at(-1), colour: "report" }] : [],
      keep = answers.slice(-1);
    const there = free
      ? {
          there: {
            at: scene.state.there,
            text: "there",
            move: (at) => {
              scene.moveThere(at);
              draw();
            },
          },
        }
      : {};
    scene.yours.show({
      marks: [...reports, ...last],
      keep,
      pins: { ...there, you: scene.you(() => restart()) },
      words: `You and ${words.many(answers.length, "report")} around you.`,
    });
    // When the building is found it is what counts.
    const faint = reports.map((mark) => ({ ...mark, fill: 0.2 })),
      here = { kind: "circle", at: scene.state.me, radius: 45, colour: "missed", text: "found", fill: 0 };
    scene.theirs.show({
      belief: run.belief,
      marks: run.found ? [...faint, here] : [...reports, ...last],
      keep,
      words: `What the observer believes. ${scene.sure(run.belief)}`,
    });
    $("legend").hidden = false;
    if (free) odds();
    scene.tell(verdict(), mood(), { quiet: Boolean(playing) });
    put("play", playing ? "Pause" : over() ? "Play again" : "Play");
    $("ask-once").setAttribute("aria-disabled", over());
    document.documentElement.dataset.playing = playing ? "yes" : "no";
    chart();
  }

  // Free play: the odds between two places after all that was seen, whose stops move apart with each payment. A session
  // pays for its tests, too, and that a person is still there changes the odds.
  function odds() {
    const { me, there } = scene.state,
      two = run.watch({ x: [me.x, there.x], y: [me.y, there.y], mass: [0.5, 0.5] });
    for (const { report, times } of run.seen) two.see(report, times);
    const [here, away] = two.logs();
    const limit = posterior.oddsLimit(me, there, Math.max(1, run.answerer.paid()), scene.epsilon());
    $("gauge").replaceChildren(gauge({ change: Math.exp(here - away), limit, left: "there", right: "here" }));
  }

  function chart() {
    if (run.kind === "session" && run.history.length > 1) {
      const note = say.left(run.history[0][1], run.left, run.asked);
      scene.chart(charts.shrinking(run.history, note), note);
    } else if (run.kind === "fresh" && !free && over() && !playing) typical();
    else $("chart-box").hidden = true;
  }

  // This run among many: how many reports it takes from here.
  async function typical() {
    const mine = run,
      bet = Number($("bet").value) || null;
    if (!mine.typical) {
      scene.chart(null, say.computing());
      const { x, y, building } = scene.state.me;
      mine.typical = await background.ask(
        "typical",
        { x, y, building },
        scene.noiseEpsilon(),
        scene.state.seed + 1,
        RUNS,
      );
    }
    if (mine !== run || $("play-box").hidden) return;
    const counts = mine.typical,
      at = (share) => counts[Math.round(share * (counts.length - 1))];
    const note =
      say.bet(bet) +
      say.typical({ count: counts.length, middle: at(0.5), low: at(0.05), high: at(0.95), most: runs.MOST });
    scene.chart(charts.histogram(counts, { run: mine.found ? mine.asked : null, bet, title: note }), note);
  }

  function pause() {
    playing = 0;
  }
  function restart(kind = run.kind) {
    pause();
    begin(kind);
    draw();
  }
  function open(kind, withThere) {
    free = withThere;
    restart(kind);
  }
  function again() {
    scene.reseed();
    restart();
  }

  // Slowly first, so that each report can be seen, then faster and faster; at once where motion is unwanted.
  function start() {
    if (playing) {
      pause();
      draw();
      return;
    }
    if (over()) again();
    const mine = (playing = Math.random());
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const tick = () => {
      if (mine !== playing) return;
      ask(still ? ONE_FRAME : run.asked < 12 ? 1 : Math.ceil(run.asked / 8));
      if (over()) pause();
      if (!still || !playing) draw();
      if (playing) setTimeout(tick, still ? 0 : run.asked < 6 ? 420 : 120);
    };
    document.documentElement.dataset.playing = "yes";
    tick();
  }
  function once() {
    if (over()) return;
    pause();
    ask(1);
    draw();
  }

  return { remedy, open, restart, again, start, once, pause, draw };
})();
