// How many fresh reports an observer needs: many runs, for a typical number and its range.

import { homes } from "./homes.js";
import { noise } from "./noise.js";
import { posterior } from "./posterior.js";

export const runs = (() => {
  const SURE = 0.9,
    MOST = 2000,
    YEAR = 35040, // questions, one every quarter of an hour
    UNLIKELY = 40; // a place whose logarithm is so far below the best one plays no part any more

  // The number of reports after which the observer is sure of the right building, or MOST.
  function untilFound(me, epsilon) {
    const x = homes.x.slice(),
      y = homes.y.slice(),
      building = homes.building.slice(),
      logs = posterior.before(homes);
    let size = x.length;
    for (let count = 1; count <= MOST; count += 1) {
      const report = noise.report(me, epsilon);
      let best = -Infinity;
      for (let i = 0; i < size; i += 1) {
        const east = x[i] - report.x,
          north = y[i] - report.y;
        logs[i] -= epsilon * Math.sqrt(east * east + north * north);
        if (logs[i] > best) best = logs[i];
      }
      let mine = 0,
        all = 0,
        kept = 0;
      for (let i = 0; i < size; i += 1) {
        if (logs[i] < best - UNLIKELY) continue;
        const weight = Math.exp(logs[i] - best);
        all += weight;
        if (building[i] === me.building) mine += weight;
        x[kept] = x[i];
        y[kept] = y[i];
        logs[kept] = logs[i];
        building[kept] = building[i];
        kept += 1;
      }
      size = kept;
      if (mine >= SURE * all) return count;
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

  return { SURE, MOST, YEAR, untilFound, typical };
})();
