// Ways of answering an app that asks again and again: each is a function from a true place to what is sent, null for nothing.

import { SamePlace, SparseVector, TraceSession } from "../../device/geoind.js";
import { noise } from "./noise.js";
import { posterior } from "./posterior.js";

export const remedies = (() => {
  const { apart } = posterior;
  const newKey = () => crypto.getRandomValues(new Uint8Array(32));

  // One object for one report: who sees it twice sees that it is the same.
  function memory() {
    const known = new Map();
    return (report) => {
      const name = `${report.lat} ${report.lon}`;
      if (!known.has(name)) known.set(name, noise.toMetres(report));
      return known.get(name);
    };
  }

  // Fresh noise each time: every answer costs, and every answer tells.
  function fresh(epsilon) {
    let paid = 0;
    return { answer: (truth) => { paid += 1; return noise.report(truth, epsilon); }, paid: () => paid };
  }

  // The same report for everything within a cell of a grid that only the phone knows: turned at random.
  function same(epsilon, cell) {
    const places = new SamePlace(newKey(), { cell }), shown = memory(), known = new Map();
    const draw = (truth) => shown(places.obfuscate({ ...noise.toDegrees(truth), person: "you", epsilon: noise.promised(epsilon) }));
    function answer(truth) {
      // A day that is repeated has the same places.
      if (!known.has(truth)) known.set(truth, draw(truth));
      return known.get(truth);
    }
    return { answer, paid: () => new Set(known.values()).size };
  }

  // Fresh noise until the budget is spent, then nothing.
  function budget(epsilon, reports) {
    let paid = 0;
    return { answer: (truth) => { if (paid >= reports) return null; paid += 1; return noise.report(truth, epsilon); }, paid: () => paid };
  }

  // The last report holds until a private test says that the person has left (the sparse vector technique). Then one of
  // the earlier places may be chosen, for somebody who comes back; else a fresh report is made.
  function session(epsilon, { choice = 0, places = 8 } = {}) {
    const limit = 3 * noise.radiusQuantile(0.9, epsilon), promised = noise.promised(epsilon);
    const method = new SparseVector({ fresh: promised, test: promised, limit, choice: noise.promised(choice), places });
    const trace = new TraceSession(method, { key: newKey() }), shown = memory();
    let time = 0, made = 0, before = 0;
    function answer(truth) {
      time += 1;
      const report = shown(trace.report({ ...noise.toDegrees(truth), time }));
      const { spent } = trace, costs = (spent - before) / promised;
      // A report and its tests cost twice epsilon, and a choice instead of a report half as much as either.
      if (costs > 1.75) made += 1;
      before = spent;
      return report;
    }
    return { answer, paid: () => trace.spent / promised, made: () => made, limit };
  }

  const ZONE = { limit: 3, test: 10 }; // the limit of a zone's tests in radii, and their epsilon times the radius

  // A zone around home: a report that falls into it is replaced by one noisy place, always the same, and then a private test
  // against that place decides when the person has left.
  function zone(epsilon, home, margin = 200) {
    const centre = noise.report(home, epsilon), radius = noise.radiusQuantile(0.99, epsilon) + margin;
    const test = ZONE.test / radius, limit = ZONE.limit * radius, { lat, lon } = noise.toDegrees(centre);
    const method = new SparseVector({ fresh: noise.promised(epsilon), test: noise.promised(test), limit });
    let spent = epsilon, time = 0, inside = null;
    // A session whose last answer is the centre: it repeats it until its tests say that the person has left.
    function enter() {
      const history = { time, reports: [[time, lon, lat, true]], anchors: [[lon, lat]], run: [0, method.test, [lon, lat]], runs: 1, spent: 0, began: time };
      spent += test;
      return TraceSession.resume(JSON.stringify({ history, seen: "" }), method, { key: newKey() });
    }
    function answer(truth) {
      time += 1;
      const at = inside?.report({ ...noise.toDegrees(truth), time });
      if (at && at.lat === lat && at.lon === lon) return centre;
      const report = at ? noise.toMetres(at) : noise.report(truth, epsilon);
      spent += epsilon;
      inside = apart(report, centre) > radius ? null : enter();
      return inside ? centre : report;
    }
    return { answer, paid: () => spent / epsilon, centre, radius, test, limit };
  }

  return { fresh, same, budget, session, zone };
})();
