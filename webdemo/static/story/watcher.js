// An observer of every answer to a person who stays: the belief after each, for every way of answering.

import { posterior } from "./posterior.js";

export const watcher = (() => {
  const QUANTILES = Array.from({ length: 15 }, (_, i) => (i + 0.5) / 15);

  const exceeds = (bar, scale) => (bar > 0 ? 0.5 * Math.exp(-bar / scale) : 1 - 0.5 * Math.exp(bar / scale));
  const laplaceQuantile = (p, scale) => (p < 0.5 ? 1 : -1) * scale * Math.log(2 * Math.min(p, 1 - p));

  // The probability that a test says "left" at this distance, for each quantile of the limit's noise.
  function leaves(distance, limit, epsilon) {
    const forLimit = epsilon / (1 + 2 ** (2 / 3)),
      forTests = epsilon - forLimit;
    return QUANTILES.map((p) => exceeds(limit + laplaceQuantile(p, 1 / forLimit) - distance, 2 / forTests));
  }

  // Independent reports: each new one counts; one that is repeated reveals nothing new.
  function ofReports(homes, epsilon) {
    let logs = posterior.before(homes),
      last = null;
    return {
      see(report, _times = 1) {
        if (report && report !== last) logs = posterior.afterReport(logs, homes, report, epsilon);
        last = report;
      },
      logs: () => logs,
    };
  }

  // A session (without a choice among earlier places): "still here" reveals a little, too, and the limit's noise is
  // shared by all tests of a run, so the belief keeps a row for each of its quantiles until the run is over.
  function ofSession(homes, epsilon, test, limit) {
    let logs = posterior.before(homes),
      last = null,
      rows = null,
      no = null,
      yes = null;
    // Relative to the largest row: a year of tests makes numbers that a double cannot hold.
    function mixed(i) {
      const most = rows.reduce((now, row) => Math.max(now, row[i]), -Infinity);
      return most + Math.log(rows.reduce((sum, row) => sum + Math.exp(row[i] - most), 0) / rows.length);
    }
    const flat = () => (rows ? logs.map((log, i) => log + mixed(i)) : logs);
    function begin(report) {
      const left = Array.from(homes.x, (x, i) => leaves(Math.hypot(x - report.x, homes.y[i] - report.y), limit, test));
      no = QUANTILES.map((_, q) => Float64Array.from(left, (shares) => Math.log1p(-shares[q])));
      yes = QUANTILES.map((_, q) => Float64Array.from(left, (shares) => Math.log(shares[q])));
      rows = QUANTILES.map(() => new Float64Array(homes.x.length));
      last = report;
    }
    const add = (changes, times = 1) => {
      rows = rows.map((row, q) => row.map((value, i) => value + times * changes[q][i]));
    };
    return {
      see(report, times = 1) {
        if (last && report === last) {
          add(no, times);
          return;
        }
        if (last) {
          add(yes);
          logs = flat();
        }
        logs = posterior.afterReport(logs, homes, report, epsilon);
        begin(report);
        if (times > 1) add(no, times - 1);
      },
      logs: flat,
    };
  }

  return { QUANTILES, leaves, ofReports, ofSession };
})();
