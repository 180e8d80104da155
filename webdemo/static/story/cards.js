// The six cards, and free play after them: what each draws, and which controls it has.

import { gauge } from "../js/gauge.js";
import { put } from "../js/words.js";
import { homes, noise, pointsOf, posterior } from "./core.js";
import { $, words } from "./page.js";
import { play } from "./play.js";
import { scene } from "./scene.js";
import { CARDS, say } from "./texts.js";
import { TownMap } from "./town_map.js";

export const cards = (() => {
  const { state, yours, theirs } = scene;
  const CONFIDENCE = 0.95;
  const line = (report) => [
    { kind: "line", at: state.me, to: report, colour: "report" },
    { kind: "dot", at: report, colour: "report", text: "report" },
  ];

  function problem() {
    const belief = new Float64Array(TownMap.buildings.length);
    belief[state.me.building] = 1;
    yours.show({ pins: { you: scene.you(problem) }, words: "You, in a building of the town." });
    theirs.show({
      belief,
      marks: [{ kind: "dot", at: state.me, colour: "report", text: "sent to the app" }],
      words: "The observer sees exactly where you are.",
    });
    $("legend").hidden = false;
    scene.tell(say.known(), "found");
  }

  function oneReport() {
    const report = scene.report(),
      far = posterior.apart(state.me, report);
    const belief = scene.beliefOf(posterior.afterReport(posterior.before(homes), homes, report, scene.noiseEpsilon()));
    yours.show({
      marks: line(report),
      keep: [report],
      pins: { you: scene.you(oneReport) },
      words: `You, and a report ${words.metres(far)} away.`,
    });
    theirs.show({
      belief,
      keep: [report],
      marks: [{ kind: "dot", at: report, colour: "report", text: "report" }],
      words: `What the observer believes. ${scene.sure(belief)}`,
    });
    $("legend").hidden = false;
    scene.tell(say.oneReport(far, scene.countOf(belief)));
  }

  function hereOrThere() {
    const report = scene.report(),
      { me, there } = state,
      far = posterior.apart(me, there);
    const change = posterior.oddsChange(me, there, [report], scene.noiseEpsilon()),
      limit = posterior.oddsLimit(me, there, 1, scene.epsilon());
    yours.show({
      marks: [
        { kind: "line", at: me, to: there, colour: "there" },
        { kind: "dot", at: report, colour: "report", text: "report" },
      ],
      keep: [report],
      focus: [
        { ...me, radius: 260 },
        { ...there, radius: 60 },
        { ...report, radius: 60 },
      ],
      pins: {
        there: {
          at: there,
          text: "there",
          move: (at) => {
            scene.moveThere(at);
            hereOrThere();
          },
        },
        you: { ...scene.you(hereOrThere), text: "here" },
      },
      words: `Here and there, ${words.metres(far)} apart, and the report.`,
    });
    $("gauge").replaceChildren(gauge({ change, limit, left: "there", right: "here" }));
    put("exponent", `e^(εd) = ${words.factor(limit)} for d = ${words.metres(far)}`);
    scene.tell(say.odds(change, limit, far));
  }

  const food = pointsOf(TOWN.food);
  function nearMe() {
    const report = scene.report(),
      interest = Number($("interest").value),
      reach = noise.retrievalRadius(interest, CONFIDENCE, scene.noiseEpsilon());
    const retrieved = food.filter((place) => posterior.apart(place, report) <= reach),
      near = food.filter((place) => posterior.apart(place, state.me) <= interest);
    const missed = near.filter((place) => !retrieved.includes(place)),
      [west, south, east, north] = TownMap.bounds;
    yours.show({
      marks: [
        { kind: "circle", at: report, radius: reach, colour: "report", text: "what is asked for" },
        { kind: "circle", at: state.me, radius: interest, colour: "truth" },
        ...retrieved.map((at) => ({ kind: "speck", at, colour: "retrieved", radius: 3 })),
        ...near.map((at) => ({
          kind: "speck",
          at,
          colour: missed.includes(at) ? "missed" : "kept",
          radius: 4,
          fill: 1,
        })),
        { kind: "dot", at: report, colour: "report" },
      ],
      keep: [{ ...report, radius: reach }],
      focus: [
        { ...state.me, radius: 260 },
        { ...report, radius: reach },
      ],
      pins: { you: scene.you(nearMe) },
      words: "The circle that is asked for around the report, and the one that you want around you.",
    });
    scene.tell(
      say.near({
        retrieved: retrieved.length,
        kept: near.length - missed.length,
        missed: missed.length,
        confidence: CONFIDENCE,
        area: Number(((reach / interest) ** 2).toPrecision(2)),
        beyond:
          report.x - reach < west || report.x + reach > east || report.y - reach < south || report.y + reach > north,
      }),
    );
  }

  const DRAWN = [
    { boxes: [], maps: 2, draw: problem },
    { boxes: ["dial", "draw"], maps: 2, draw: oneReport },
    { boxes: ["gauge", "draw"], maps: 1, draw: hereOrThere },
    { boxes: ["bet", "dial", "play"], maps: 2, playing: () => "fresh" },
    { boxes: ["remedy", "budget", "play"], maps: 2, playing: play.remedy },
    { boxes: ["near", "draw"], maps: 1, draw: nearMe },
  ];
  const LIST = CARDS.map((texts, i) => ({ ...texts, ...DRAWN[i] }));
  const FREE = { boxes: ["dial", "gauge", "remedy", "budget", "play"], maps: 2, playing: play.remedy, there: true };

  function open(card) {
    scene.setUp({
      ...card,
      click: (at) => {
        scene.moveMe(at);
        card.playing ? play.restart() : card.draw();
      },
    });
    $("budget-box").hidden ||= play.remedy() !== "budget";
    $("exponent").hidden = Boolean(card.there);
    if (card.playing) play.open(card.playing(), Boolean(card.there));
    else card.draw();
  }
  return { LIST, FREE, open };
})();
