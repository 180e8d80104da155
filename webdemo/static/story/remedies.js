// Ways of answering an app that asks again and again: each is a function from a true place to what is sent, null for nothing.

const remedies = (() => {
  const { apart } = posterior;

  // Fresh noise each time: every answer costs, and every answer tells.
  function fresh(epsilon) {
    let paid = 0;
    return { answer: (truth) => { paid += 1; return noise.report(truth, epsilon); }, paid: () => paid };
  }

  // The same report for everything within a cell of a grid that only the phone knows: turned and moved at random.
  function same(epsilon, cell) {
    const turn = 2 * Math.PI * noise.uniform(), shift = [noise.uniform(), noise.uniform()], memory = new Map();
    const cos = Math.cos(turn), sin = Math.sin(turn);
    function answer(truth) {
      const u = Math.floor((truth.x * cos + truth.y * sin) / cell + shift[0]), v = Math.floor((truth.y * cos - truth.x * sin) / cell + shift[1]);
      const name = `${u},${v}`;
      if (!memory.has(name)) {
        const a = (u + 0.5 - shift[0]) * cell, b = (v + 0.5 - shift[1]) * cell;
        memory.set(name, noise.report({ x: a * cos - b * sin, y: a * sin + b * cos }, epsilon));
      }
      return memory.get(name);
    }
    return { answer, paid: () => memory.size };
  }

  // Fresh noise until the budget is spent, then nothing.
  function budget(epsilon, reports) {
    let paid = 0;
    return { answer: (truth) => { if (paid >= reports) return null; paid += 1; return noise.report(truth, epsilon); }, paid: () => paid };
  }

  // How a run of tests splits its epsilon: for the limit's noise and for the tests' (Lyu, Su and Li 2017).
  function shares(epsilon) {
    const limit = epsilon / (1 + 2 ** (2 / 3));
    return { limit, test: epsilon - limit };
  }

  const FAR = 1 / 3; // an earlier place is chosen where it is nearer than about this many limits: as good as a report

  // The last report holds until a private test says that the person has left (the sparse vector technique). Then one of
  // the earlier places may be chosen, for somebody who comes back; else a fresh report is made.
  function session(epsilon, { choice = 0, places = 8 } = {}) {
    const limit = 3 * noise.radiusQuantile(0.9, epsilon), split = shares(epsilon);
    let last = null, bar = 0, anchors = [], spent = 0, made = 0;
    function earlier(truth) {
      const known = anchors.filter((anchor) => anchor !== last).slice(-places);
      if (!choice || !known.length) return null;
      spent += choice;
      const scores = known.map((anchor) => apart(truth, anchor) + noise.exponential(2 / choice));
      const none = FAR * limit + noise.exponential(2 / choice), best = scores.indexOf(Math.min(...scores));
      return scores[best] <= none ? known[best] : null;
    }
    function answer(truth) {
      if (last && apart(truth, last) + noise.laplace(2 / split.test) < bar) return last;
      let report = last ? earlier(truth) : null;
      if (!report) { report = noise.report(truth, epsilon); spent += epsilon; made += 1; }
      spent += epsilon;
      bar = limit + noise.laplace(1 / split.limit);
      anchors = [...anchors.filter((anchor) => anchor !== report), report];
      last = report;
      return report;
    }
    return { answer, paid: () => spent / epsilon, made: () => made, limit };
  }

  const ZONE = { limit: 3, test: 10 }; // the limit of a zone's tests in radii, and their epsilon times the radius

  // A zone around home: a report that falls into it is replaced by one noisy place, always the same, and then a private test
  // against that place decides when the person has left.
  function zone(epsilon, home, margin = 200) {
    const centre = noise.report(home, epsilon), radius = noise.radiusQuantile(0.99, epsilon) + margin;
    const test = ZONE.test / radius, limit = ZONE.limit * radius, split = shares(test);
    let spent = epsilon, bar = null;
    function answer(truth) {
      if (bar !== null && apart(truth, centre) + noise.laplace(2 / split.test) < bar) return centre;
      bar = null;
      const report = noise.report(truth, epsilon);
      spent += epsilon;
      if (apart(report, centre) > radius) return report;
      spent += test;
      bar = limit + noise.laplace(1 / split.limit);
      return centre;
    }
    return { answer, paid: () => spent / epsilon, centre, radius, test, limit };
  }

  return { fresh, same, budget, session, shares, zone, FAR };
})();
