// The words of the story: cards, controls and findings. Geometry and state are elsewhere.

import { factor, many, metres, percent } from "../../device/geoind.js";
import { runs } from "./core.js";

export const CARDS = [
  {
    title: "An app asks where you are",
    sentence: "Send your position, and everyone who sees the app’s data knows where you live.",
    drag: "Drag yourself to another building.",
  },
  {
    title: "Send a report instead",
    sentence:
      "The phone sends a random place near you. Beforehand the observer knows the method and the buildings: people are in them.",
    drag: "Turn the dial.",
  },
  {
    title: "The promise",
    sentence:
      "For two places at a distance d, one report changes the odds between them by a factor of at most e^(εd): geo-indistinguishability.",
    drag: "Drag “there”: the stops follow.",
  },
  {
    title: "Ask again",
    sentence: "Each fresh report narrows the belief. After how many is the observer 90 % sure of your building?",
    drag: "Guess, then play.",
  },
  {
    title: "What helps",
    sentence:
      "Repeat the same report, stop at a budget, or keep the last report until a private test finds that you left.",
    drag: "Choose one, and play a year of questions.",
  },
  {
    title: "Coffee nearby",
    sentence: "A service can still help: ask for a larger circle around the report, and keep what is near you.",
    drag: "Drag the radius.",
  },
];

export const PARTS = { free: "Free play", day: "Your day", guess: "Guess where I am" };

export const REMEDIES = {
  fresh: "fresh noise each time",
  same: "same place, same report",
  budget: "a budget",
  session: "a session",
  zone: "a zone around home",
};

export const say = (() => {
  const whole = (number) => number.toLocaleString("en");
  const questions = (asked) => `Asked ${whole(asked)} times${asked >= runs.YEAR ? ", every 15 minutes of a year" : ""}`;
  const sure = (count) => `90 % sure: ${count === 1 ? "this one building" : `one of these ${count} buildings`}.`;
  return {
    sure,
    promise: (radius, most, mean) =>
      `Places ${metres(radius)} apart: the odds change ${most} times at most. A report is off by ${metres(mean)} on average.`,
    known: () => "The observer knows your building. One report was enough.",
    oneReport: (off, count) => `This report is off by ${metres(off)}. The observer is ${sure(count)}`,
    odds: (change, limit, far) =>
      `If both were equally likely before, the report makes it ${change >= 1 ? `${factor(change)} : 1 for here` : `${factor(1 / change)} : 1 for there`}. ${metres(far)} apart, no report can make it more than ${factor(limit)} : 1.`,
    near: ({ retrieved, beyond, kept, missed, confidence, area }) =>
      `The service sees the blue circle alone and sends ${many(retrieved, "place")}${beyond ? " (those on this map)" : ""}; your phone keeps the ${kept} near you and misses ${missed || "none"}. With ${percent(confidence)} confidence nothing is missed, for ${area} times the area.`,

    press: () => "Press Play: the app asks again and again.",
    found: (asked, share) =>
      `Found after ${many(asked, "report")}: the observer is ${percent(share)} sure of one building, and it is yours.`,
    refused: (paid, count) => `Refused: the budget of ${many(paid, "report")} is spent. ${sure(count)}`,
    same: (asked, count) => `${questions(asked)}, always the same answer, paid once. ${sure(count)}`,
    session: ({ asked, made, paid, count, first }) =>
      `${questions(asked)}: ${many(made, "fresh report")}, paid like ${many(paid, "report")} with the tests. ${sure(count)}${count === first ? "" : ` After the first report: ${first}.`}`,
    fresh: (asked, count) => `${many(asked, "report")}. ${sure(count)}`,
    left: (first, last, asked) =>
      `Buildings that hold 90 % of the belief: ${first} at first, ${last} after ${whole(asked)} questions.`,
    typical: ({ count, middle, low, high, most }) =>
      `${count} runs from here: typically ${middle}, nine in ten between ${low} and ${high >= most ? `${most} or more` : high}.`,
    bet: (number) => (number ? `You guessed ${number}. ` : ""),
    computing: () => "Computing 200 runs …",

    choose: () => "Choose a file of yours, or take the example.",
    working: () => "Asking for a year …",
    day: (days, after) =>
      `${days > 1 ? `Your ${days} days, again and again` : "This day, again and again"}: ${after ? `your home is found after ${many(after, "day")}` : "no observer is sure of your home in a year"}.`,
    dayCaption: (within) => `An observer is 90 % sure of your home to within ${metres(within)}, and right`,
    dayFound: ({ found, missed, within }) =>
      found
        ? `after ${many(found, "day")}`
        : `not in a year${missed === null ? "" : missed <= within ? ` (guess ${metres(missed)} off: lucky, not sure)` : ` (guess ${metres(missed)} off)`}`,
    dayAnswered: (answered, asked) => `${whole(answered)} of ${whole(asked)}`,
    zone: () => "A zone hides where home is, not whether you are inside or outside of it: that is visible.",

    click: () => "Click the map for each guess of the class, or add one here. Then reveal.",
    guesses: (count) => `${many(count, "guess", "guesses")}. Add more, or reveal.`,
    revealed: ({ best, count, observer, closer, belief }) =>
      `${count > 1 ? `The best of ${count} guesses is` : "You are"} off by ${metres(best)}, the observer by ${metres(observer)}. ${closer ? (count > 1 ? `${closer} of ${count} were closer.` : "You were closer, by luck or by insight.") : "The observer was closer."} Its belief in the right building: ${percent(belief)}.`,
  };
})();
