// Your own day: the file, the verdict, and each remedy.

import { put } from "../js/words.js";
import { background } from "./background.js";
import { noise, ownDay } from "./core.js";
import { dayFiles } from "./own_day_files.js";
import { $, words } from "./page.js";
import { scene } from "./scene.js";
import { REMEDIES, say } from "./texts.js";

export const dayView = (() => {
  let fixes = null,
    known = null,
    way = "fresh",
    asked = 0;

  // A Tuesday: home, half an hour to work, lunch, and back, with the small errors of a phone.
  function example() {
    const home = [0, 0],
      work = [2600, 1500],
      lunch = [2350, 1640],
      shake = () => 8 * (noise.uniform() + noise.uniform() - 1);
    const between = (a, b, share) => [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
    const where = (hour) =>
      hour < 8
        ? home
        : hour < 8.5
          ? between(home, work, (hour - 8) * 2)
          : hour >= 12 && hour < 13
            ? lunch
            : hour < 18
              ? work
              : hour < 18.5
                ? between(work, home, (hour - 18) * 2)
                : home;
    const lat = 60.17,
      lon = 24.94,
      midnight = Date.UTC(2026, 9, 13) / 1000 - (lon / 15) * 3600;
    return Array.from({ length: 288 }, (_, i) => {
      const [x, y] = where(i / 12);
      return {
        lat: lat + (y + shake()) / 111195,
        lon: lon + (x + shake()) / (111195 * Math.cos((lat * Math.PI) / 180)),
        time: midnight + 300 * i,
      };
    });
  }

  function use(found) {
    if (!ownDay.sampled(found).length)
      throw new Error("The places of this file are too far apart in time to tell where you were.");
    fixes = found;
    study();
  }
  async function study() {
    const mine = (asked += 1);
    if (!fixes) {
      scene.tell(say.choose());
      draw();
      return;
    }
    scene.tell(say.working(), "", { quiet: true });
    // A seed may be in a link: the noise of a visitor's own day does not come from it.
    noise.seed(null);
    draw();
    const answer = await background.ask("study", fixes, scene.noiseEpsilon(), Number($("budget").value));
    if (mine !== asked || $("day-box").hidden) return;
    known = answer;
    draw();
    const { fresh } = known.outcomes;
    scene.tell(say.day(known.days, fresh.found), fresh.found ? "found" : "safe");
    scene.table(
      say.dayCaption(ownDay.FOUND),
      ["The phone answers with", "found", "answered", "off by"],
      Object.entries(known.outcomes).map(([name, outcome]) => [
        REMEDIES[name],
        say.dayFound({ ...outcome, within: ownDay.FOUND }),
        say.dayAnswered(outcome.answered, outcome.asked),
        words.metres(outcome.off),
      ]),
    );
  }

  function draw() {
    $("way-box").hidden = !known;
    put("zone-note", say.zone());
    for (const map of [scene.yours, scene.theirs]) map.grounded = false;
    if (!known) {
      scene.yours.show({ words: "No day yet." });
      scene.theirs.show({ words: "No day yet." });
      return;
    }
    const { home, steps, outcomes } = known,
      { reports, guess } = outcomes[way],
      span = (pick) => [Math.min(...steps.map(pick)), Math.max(...steps.map(pick))];
    const [west, east] = span(({ x }) => x),
      [south, north] = span(({ y }) => y),
      room = Math.max(400, (east - west) * 0.15, (north - south) * 0.15);
    const bounds = [west - room, south - room, east + room, north + room],
      seen = [...new Set(reports)];
    const dots = seen.map((at) => ({
      kind: "speck",
      at,
      colour: "report",
      radius: seen.length < 40 ? 5 : 3,
      fill: seen.length < 40 ? 0.9 : 0.35,
    }));
    const best = guess ? [{ kind: "diamond", at: guess, colour: "remapped", text: "home?" }] : [];
    scene.yours.show({
      bounds,
      marks: [
        { kind: "path", path: steps, colour: "truth" },
        { kind: "dot", at: home, colour: "truth", text: "home" },
      ],
      words: "Your day, and your home.",
    });
    scene.theirs.show({
      bounds,
      marks: [...dots, ...best],
      words: `${words.many(seen.length, "different report")}, and the observer’s guess of your home.`,
    });
  }

  async function read(file) {
    try {
      use(dayFiles.parse(await file.text()));
      $("problem").hidden = true;
    } catch (error) {
      // What another file said must not stand under the name of this one.
      fixes = known = null;
      $("outcomes").hidden = true;
      study();
      put("problem", error.message);
      $("problem").hidden = false;
    }
  }

  function open() {
    scene.setUp({ boxes: ["day", "dial", "budget", "way"], maps: 2 });
    study();
  }

  $("file").addEventListener("change", () => {
    if ($("file").files[0]) read($("file").files[0]);
  });
  $("example-day").addEventListener("click", () => {
    $("file").value = "";
    $("problem").hidden = true;
    use(example());
  });
  for (const radio of document.querySelectorAll("input[name=way]"))
    radio.addEventListener("change", () => {
      way = radio.value;
      draw();
    });
  return { open, example };
})();
