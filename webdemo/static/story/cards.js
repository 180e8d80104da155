// The six cards, and free play after them: what each shows, and the one thing to drag.

import { gauge } from "../js/gauge.js";
import { noise } from "./noise.js";
import { $, words } from "./page.js";
import { play } from "./play.js";
import { posterior } from "./posterior.js";
import { scene } from "./scene.js";
import { TownMap, homes } from "./town_map.js";

export const cards = (() => {
  const { state, yours, theirs } = scene;
  const CONFIDENCE = 0.95;
  const line = (report) => [{ kind: "line", at: state.me, to: report, colour: "report" }, { kind: "dot", at: report, colour: "report", text: "report" }];

  function problem() {
    const belief = new Float64Array(TownMap.buildings.length);
    belief[state.me.building] = 1;
    yours.show({ pins: { you: scene.you(problem) }, words: "You, in a building of the town." });
    theirs.show({ belief, marks: [{ kind: "dot", at: state.me, colour: "report", text: "the app was told this" }], words: "The observer sees exactly where you are." });
    $("legend").hidden = false;
    scene.tell("The observer knows your building. One report was enough.", "found");
  }

  function oneReport() {
    const report = scene.report(), e = scene.noiseEpsilon();
    const belief = scene.beliefOf(posterior.afterReport(posterior.before(homes), homes, report, e)), sure = scene.sure(belief);
    yours.show({ marks: line(report), keep: [report], pins: { you: scene.you(oneReport) }, words: `You, and a report ${words.metres(posterior.apart(state.me, report))} away.` });
    theirs.show({ belief, keep: [report], marks: [{ kind: "dot", at: report, colour: "report", text: "report" }], words: `What the observer believes. ${sure}` });
    $("legend").hidden = false;
    scene.tell(`This report is off by ${words.metres(posterior.apart(state.me, report))}. The observer, who knows the method, is ${sure}`);
  }

  function hereOrThere() {
    const report = scene.report(), { me, there } = state;
    const change = posterior.oddsChange(me, there, [report], scene.noiseEpsilon()), limit = posterior.oddsLimit(me, there, 1, scene.epsilon()), far = words.metres(posterior.apart(me, there));
    yours.show({
      marks: [{ kind: "line", at: me, to: there, colour: "there" }, { kind: "dot", at: report, colour: "report", text: "report" }], keep: [report],
      focus: [{ ...me, radius: 260 }, { ...there, radius: 60 }, { ...report, radius: 60 }],
      pins: { there: { at: there, text: "there", move: (at) => { state.there = at; hereOrThere(); } }, you: { ...scene.you(hereOrThere), text: "here" } },
      words: `Here and there, ${far} apart, and the report.`,
    });
    $("gauge").replaceChildren(gauge({ change, limit, left: "there", right: "here" }));
    scene.tell(`If both were equally likely before, the report makes it ${change >= 1 ? `${words.factor(change)} : 1 for here` : `${words.factor(1 / change)} : 1 for there`}. Here and there are ${far} apart: no report can make it more than ${words.factor(limit)} : 1.`);
  }

  const food = TOWN.places.kind.flatMap((kind, i) => (kind === "food" ? [{ x: TOWN.places.xy[2 * i] / 10, y: TOWN.places.xy[2 * i + 1] / 10 }] : []));
  function nearMe() {
    const report = scene.report(), e = scene.noiseEpsilon(), interest = Number($("interest").value), reach = noise.retrievalRadius(interest, CONFIDENCE, e);
    const retrieved = food.filter((place) => posterior.apart(place, report) <= reach), near = food.filter((place) => posterior.apart(place, state.me) <= interest);
    const missed = near.filter((place) => !retrieved.includes(place)), [west, south, east, north] = TownMap.bounds;
    const beyond = report.x - reach < west || report.x + reach > east || report.y - reach < south || report.y + reach > north;
    yours.show({
      marks: [
        { kind: "circle", at: report, radius: reach, colour: "report", text: "what is asked for" }, { kind: "circle", at: state.me, radius: interest, colour: "truth" },
        ...retrieved.map((at) => ({ kind: "speck", at, colour: "retrieved", radius: 3 })), ...near.map((at) => ({ kind: "speck", at, colour: missed.includes(at) ? "missed" : "kept", radius: 4, fill: 1 })),
        { kind: "dot", at: report, colour: "report" },
      ],
      keep: [{ ...report, radius: reach }], focus: [{ ...state.me, radius: 260 }, { ...report, radius: reach }], pins: { you: scene.you(nearMe) }, words: "The circle that is asked for around the report, and the one that you want around you.",
    });
    const kept = near.length - missed.length;
    scene.tell(`The service sees the blue circle alone and sends ${words.many(retrieved.length, "place")}${beyond ? " (those on this map)" : ""}; your phone keeps the ${kept} near you and ${missed.length ? `misses ${missed.length}` : "misses none"}. With ${words.percent(CONFIDENCE)} confidence nothing is missed, for ${Number(((reach / interest) ** 2).toPrecision(2))} times the area.`);
  }

  const LIST = [
    { title: "An app wants to know where you are", sentence: "Tell it, and everybody who ever sees its data knows where you live, where you work and whom you visit.", drag: "Drag yourself to another building.", boxes: [], maps: 2, draw: problem },
    { title: "Send a report instead", sentence: "Your phone sends a random place near you: how near, you choose.", drag: "Turn the dial.", boxes: ["dial", "draw"], maps: 2, draw: oneReport },
    { title: "Here, or there?", sentence: "A report can shift the odds between two places only up to a stop, and the nearer they are the closer the stop: that is the promise.", drag: "Drag “there”.", boxes: ["gauge", "draw"], maps: 1, draw: hereOrThere },
    { title: "What is near me?", sentence: "You still find your coffee: ask for a larger circle around the report, and let the phone keep what is near.", drag: "Drag the radius.", boxes: ["near", "draw"], maps: 1, draw: nearMe },
    { title: "Ask again, until they find you", sentence: "Each fresh report narrows the belief until one building glows; a wider dial only makes it last longer.", drag: "Turn the dial, then play.", boxes: ["dial", "play"], maps: 2, playing: () => "fresh" },
    { title: "What saves you", sentence: "Answer the same again, stop when a budget is spent, or keep the last report until you leave.", drag: "Choose one, drag the budget, and play.", boxes: ["remedy", "budget", "play"], maps: 2, playing: play.remedy },
  ];
  const FREE = { boxes: ["dial", "gauge", "remedy", "budget", "play"], maps: 2, playing: play.remedy, there: true };

  function open(card) {
    scene.setUp({ ...card, click: (at) => { scene.moveMe(at); card.playing ? play.restart() : card.draw(); } });
    $("budget-box").hidden ||= play.remedy() !== "budget";
    if (card.playing) play.open(card.playing(), Boolean(card.there));
    else card.draw();
  }
  return { LIST, FREE, open };
})();
