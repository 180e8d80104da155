// What an observer believes who sees reports, knows the method, and knows where people may be.

export const posterior = (() => {
  const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

  // A belief over places is kept as logarithms: a hundred reports make numbers that a double cannot hold.
  const before = (homes) => Float64Array.from(homes.mass, (mass) => Math.log(mass));

  function afterReport(logs, homes, report, epsilon) {
    return logs.map((log, i) => log - epsilon * Math.hypot(homes.x[i] - report.x, homes.y[i] - report.y));
  }
  const afterReports = (logs, homes, reports, epsilon) =>
    reports.reduce((now, report) => afterReport(now, homes, report, epsilon), logs);

  function weights(logs) {
    const most = logs.reduce((a, b) => Math.max(a, b), -Infinity);
    const raw = logs.map((log) => Math.exp(log - most)),
      sum = raw.reduce((a, b) => a + b, 0);
    return raw.map((weight) => weight / sum);
  }

  function ofBuildings(belief, homes, count) {
    const sums = new Float64Array(count);
    belief.forEach((weight, i) => {
      sums[homes.building[i]] += weight;
    });
    return sums;
  }

  // The fewest places that hold a share of the belief, likeliest first.
  function likeliest(belief, share) {
    const order = Array.from(belief.keys()).sort((a, b) => belief[b] - belief[a]);
    let sum = 0;
    const count = order.findIndex((i) => {
      sum += belief[i];
      return sum >= share * (1 - 1e-12);
    });
    return order.slice(0, count < 0 ? order.length : count + 1);
  }

  // The place with the least expected distance (Weiszfeld's iteration): the observer's best guess.
  function middle(points, mass, tolerance = 0.01) {
    const total = mass.reduce((a, b) => a + b, 0);
    let x = 0,
      y = 0;
    points.forEach((point, i) => {
      x += (mass[i] * point.x) / total;
      y += (mass[i] * point.y) / total;
    });
    for (let turn = 0; turn < 500; turn += 1) {
      let sum = 0,
        sx = 0,
        sy = 0,
        pull = 0,
        px = 0,
        py = 0;
      points.forEach((point, i) => {
        const distance = Math.hypot(point.x - x, point.y - y);
        if (distance < 1e-9) {
          pull += mass[i];
          return;
        }
        const weight = mass[i] / distance;
        sum += weight;
        sx += weight * point.x;
        sy += weight * point.y;
        px += weight * (point.x - x);
        py += weight * (point.y - y);
      });
      const force = Math.hypot(px, py);
      // On one of the points: it is the middle if it weighs more than the others pull (Vardi and Zhang 2000).
      if (sum === 0 || (pull > 0 && force <= pull)) break;
      const share = pull > 0 ? 1 - pull / force : 1,
        nextX = x + share * (sx / sum - x),
        nextY = y + share * (sy / sum - y);
      const step = Math.hypot(nextX - x, nextY - y);
      x = nextX;
      y = nextY;
      if (step < tolerance * 0.01) break;
    }
    return { x, y };
  }

  // By how much reports change the odds of `here` against `there`, and by how much they can at most.
  const oddsChange = (here, there, reports, epsilon) =>
    Math.exp(reports.reduce((sum, report) => sum + epsilon * (apart(there, report) - apart(here, report)), 0));
  const oddsLimit = (here, there, count, epsilon) => Math.exp(count * epsilon * apart(here, there));

  return { apart, before, afterReport, afterReports, weights, ofBuildings, likeliest, middle, oddsChange, oddsLimit };
})();
