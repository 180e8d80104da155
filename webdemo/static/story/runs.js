// How many fresh reports an observer needs: many runs, for a typical number and its range.

import { homes } from "./homes.js";
import { noise } from "./noise.js";
import { posterior } from "./posterior.js";

export const runs = (() => {
  const SURE = 0.9,
    MOST = 2000,
    UNLIKELY = 40; // a place whose logarithm is so far below the best one plays no part any more

  // The number of reports after which the observer is sure of the right building, or MOST.
  function untilFound(me, epsilon) {
    let x = homes.x,
      y = homes.y,
      building = homes.building,
      logs = posterior.before(homes);
    for (let count = 1; count <= MOST; count += 1) {
      const report = noise.report(me, epsilon);
      let best = -Infinity,
        mine = 0,
        all = 0;
      for (let i = 0; i < x.length; i += 1) {
        const east = x[i] - report.x,
          north = y[i] - report.y;
        logs[i] -= epsilon * Math.sqrt(east * east + north * north);
        if (logs[i] > best) best = logs[i];
      }
      for (let i = 0; i < x.length; i += 1) {
        const weight = Math.exp(logs[i] - best);
        all += weight;
        if (building[i] === me.building) mine += weight;
      }
      if (mine >= SURE * all) return count;
      if (count % 4) continue;
      const kept = Array.from(logs.keys()).filter((i) => logs[i] > best - UNLIKELY);
      [x, y, logs] = [x, y, logs].map((values) => Float64Array.from(kept, (i) => values[i]));
      building = kept.map((i) => building[i]);
    }
    return MOST;
  }

  // The numbers of reports of some runs in order, the same ones for the same seed.
  function typical(me, epsilon, seed, count) {
    noise.seed(seed);
    const found = Array.from({ length: count }, () => untilFound(me, epsilon)).sort((a, b) => a - b);
    noise.seed(null);
    return found;
  }

  return { SURE, MOST, untilFound, typical };
})();
