// When an observer of every report finds the home of a person: with fresh noise, and with each remedy.

import { noise } from "./noise.js";
import { posterior } from "./posterior.js";
import { remedies } from "./remedies.js";

export const ownDay = (() => {
  const EVERY = 900,
    DAY = 86400,
    MOST_DAYS = 365,
    NIGHT = [0, 6],
    HOME = 100,
    FOUND = 50,
    SAMPLES = 30000,
    NEAR = 200,
    STAY = 16 * 3600;
  const { apart, middle } = posterior;

  // Metres around the first fix: close enough for the surroundings of a home.
  function plane(origin) {
    const north = 111195,
      east = north * Math.cos((origin.lat * Math.PI) / 180);
    return ({ lat, lon }) => ({ x: (((lon - origin.lon + 540) % 360) - 180) * east, y: (lat - origin.lat) * north });
  }

  // Where the person is every quarter of an hour: along the way between two fixes, or still there in a gap that ends where
  // it began. In any other gap the place is unknown, and nothing is reported.
  function sampled(fixes) {
    const toPlane = plane(fixes[0]),
      lon = fixes[0].lon,
      steps = [];
    const [first, last] = [fixes[0].time, fixes.at(-1).time],
      every = Math.max(EVERY, (last - first) / SAMPLES);
    // What ends at the end of a day does not begin another one.
    const lastDay = Math.max(1, Math.ceil((last - first) / DAY)) - 1;
    let i = 0;
    for (let time = first; time <= last; time += every) {
      while (i + 1 < fixes.length && fixes[i + 1].time <= time) i += 1;
      const here = toPlane(fixes[i]),
        there = toPlane(fixes[i + 1] ?? fixes[i]),
        gap = (fixes[i + 1] ?? fixes[i]).time - fixes[i].time;
      if (gap > EVERY && (gap > STAY || apart(here, there) > NEAR)) continue;
      const share = gap > 0 && gap <= EVERY ? (time - fixes[i].time) / gap : 0;
      // The sun's time at the place: the file's own zone is not always given, and this needs none.
      const hour = (((time / 3600 + lon / 15) % 24) + 24) % 24;
      steps.push({
        x: here.x + share * (there.x - here.x),
        y: here.y + share * (there.y - here.y),
        day: Math.min(lastDay, Math.floor((time - first) / DAY)),
        night: hour >= NIGHT[0] && hour < NIGHT[1],
      });
    }
    return steps;
  }

  // Home is where most of the nights are spent; without a night in the file, where the person stays longest.
  function homeOf(steps) {
    const nights = steps.filter((step) => step.night),
      asleep = nights.length >= 4 ? nights : steps;
    const few = asleep.filter((_, i) => i % Math.ceil(asleep.length / 600) === 0);
    const crowd = few.map((a) => few.filter((b) => apart(a, b) <= HOME));
    const most = crowd.reduce((a, b) => (b.length > a.length ? b : a), []);
    return {
      ...middle(
        most,
        most.map(() => 1),
      ),
      byNight: asleep === nights,
    };
  }

  // So many reports of one place make an observer 90 % sure of it to within FOUND metres: the error of the likeliest
  // place is about normal, sqrt(2 / reports) / epsilon metres in each direction. Two more, because few are not quite normal.
  const enough = (epsilon) => 2 + (4 * Math.log(10)) / (epsilon * FOUND) ** 2;

  // The observer takes the middle of what is reported at night, the likeliest place; then again of the reports that can
  // well be of that place, because some nights are spent elsewhere. No look at the truth.
  function guessHome(seen, epsilon, from) {
    const reach = noise.radiusQuantile(0.99, epsilon);
    let at = from,
      near = [...seen.keys()];
    for (let turn = 0; turn < 3; turn += 1) {
      if (at) near = [...seen.keys()].filter((report) => apart(report, at) <= reach);
      if (!near.length) {
        at = null;
        near = [...seen.keys()];
      }
      at = middle(
        near,
        near.map((report) => seen.get(report)),
        5,
      );
    }
    return { at, sure: near.length >= enough(epsilon) };
  }

  // Found is who is sure, and right: a lucky guess is no find.
  function attack(steps, home, epsilon, answerer) {
    const days = steps.at(-1).day + 1,
      seen = new Map(),
      reports = [],
      result = { found: null, guess: null, reports };
    let off = 0,
      answered = 0,
      asked = 0;
    for (let day = 0; day < MOST_DAYS && !result.found; day += 1) {
      const before = seen.size;
      for (const step of steps) {
        if (step.day !== day % days) continue;
        asked += 1;
        const report = answerer.answer(step);
        if (!report) continue;
        off += apart(step, report);
        answered += 1;
        if (reports.length < 1500) reports.push(report);
        if (step.night || !home.byNight) seen.set(report, (seen.get(report) ?? 0) + 1);
      }
      const end = day + 1 === MOST_DAYS;
      if (!seen.size || (!end && (seen.size === before || seen.size < enough(epsilon)))) continue;
      // A guess that begins at yesterday's is soon made; now and then it begins anew.
      const { at, sure } = guessHome(seen, epsilon, day % 7 && !end ? result.guess : null);
      result.guess = at;
      if (sure && apart(at, home) <= FOUND) result.found = day + 1;
    }
    return { ...result, asked, answered, off: off / answered, missed: result.guess ? apart(result.guess, home) : null };
  }

  function study(fixes, epsilon, budget) {
    const steps = sampled(fixes),
      home = homeOf(steps);
    const ways = {
      fresh: remedies.fresh(epsilon),
      same: remedies.same(epsilon, 100),
      budget: remedies.budget(epsilon, budget),
      session: remedies.session(epsilon, { choice: epsilon / 2 }),
      zone: remedies.zone(epsilon, home),
    };
    return {
      steps,
      home,
      days: steps.at(-1).day + 1,
      outcomes: Object.fromEntries(
        Object.entries(ways).map(([name, way]) => [name, attack(steps, home, epsilon, way)]),
      ),
    };
  }
  return { FOUND, plane, sampled, homeOf, enough, guessHome, attack, study };
})();
