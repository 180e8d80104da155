// Ways of answering an app that asks again and again: each is a function from a true place to what is sent, null for nothing.

import { SamePlace, SparseVector, TraceSession } from "../../device/geoind.js";
import { noise } from "./noise.js";
import { posterior } from "./posterior.js";

export const remedies = (() => {
  const { apart } = posterior;

  // One object for one report, so that a repeated one is recognised.
  function memory(known = new Map()) {
    return (report) => {
      const name = `${report.lat} ${report.lon}`;
      if (!known.has(name)) known.set(name, noise.toMetres(report));
      return known.get(name);
    };
  }

  // Fresh noise each time: every answer costs, and every answer reveals something.
  function fresh(epsilon) {
    let paid = 0;
    return {
      answer: (truth) => {
        paid += 1;
        return noise.report(truth, epsilon);
      },
      paid: () => paid,
    };
  }

  // The same report for everything within a cell of a grid that only the phone knows: turned at random.
  function same(epsilon, cell) {
    const places = new SamePlace(noise.newKey(), { cell }),
      shown = memory(),
      known = new Map();
    const draw = (truth) =>
      shown(places.obfuscate({ ...noise.toDegrees(truth), person: "you", epsilon: noise.promised(epsilon) }));
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
    return {
      answer: (truth) => {
        if (paid >= reports) return null;
        paid += 1;
        return noise.report(truth, epsilon);
      },
      paid: () => paid,
    };
  }

  // The epsilon of a run of tests in that of a report, and the limit times that of a report. A person at home who is
  // asked every quarter of an hour is found to have left by mistake in less than one of ten years (docs/traces.md).
  const SESSION = { test: 2, limit: 23 };

  // The last report holds until a private test says that the person has left (the sparse vector technique). Then one of
  // the earlier places may be chosen, for a person who comes back; else a fresh report is made.
  function session(epsilon, { choice = 0, places = 8 } = {}) {
    const test = SESSION.test * epsilon,
      limit = SESSION.limit / epsilon,
      promised = noise.promised(epsilon);
    const method = new SparseVector({
      fresh: promised,
      test: noise.promised(test),
      limit,
      choice: noise.promised(choice),
      places,
    });
    const trace = new TraceSession(method, { key: noise.newKey() }),
      known = new Map(),
      shown = memory(known);
    let time = 0;
    function answer(truth) {
      time += 1;
      return shown(trace.report({ ...noise.toDegrees(truth), time }));
    }
    return { answer, paid: () => trace.spent / promised, made: () => known.size, test, limit };
  }

  const ZONE = { limit: 3, test: 10 }; // the limit of a zone's tests in radii, and their epsilon times the radius

  // A zone around home: a report that falls into it is replaced by one noisy place, always the same, and then a private test
  // against that place decides when the person has left.
  function zone(epsilon, home, margin = 200) {
    const centre = noise.report(home, epsilon),
      radius = noise.radiusQuantile(0.99, epsilon) + margin;
    const test = ZONE.test / radius,
      limit = ZONE.limit * radius,
      { lat, lon } = noise.toDegrees(centre);
    const method = new SparseVector({ fresh: noise.promised(epsilon), test: noise.promised(test), limit });
    let spent = epsilon,
      time = 0,
      inside = null;
    // A session whose last answer is the centre: it repeats it until its tests say that the person has left.
    function enter() {
      const history = {
        time,
        reports: [[time, lon, lat, true]],
        anchors: [[lon, lat]],
        run: [0, method.test, [lon, lat]],
        runs: 1,
        spent: 0,
        began: time,
      };
      spent += test;
      return TraceSession.resume(JSON.stringify({ history, seen: "" }), method, { key: noise.newKey() });
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
