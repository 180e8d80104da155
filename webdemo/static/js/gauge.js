// A gauge of odds: the needle shows what a report did, and the stops what no report can exceed.

import { canvas, element } from "./chart.js";

const WIDTH = 300,
  HEIGHT = 118,
  MIDDLE = [150, 108],
  RADIUS = 84,
  END = 75;

const turn = (degrees, radius) => {
  const angle = ((degrees - 90) * Math.PI) / 180;
  return [MIDDLE[0] + radius * Math.cos(angle), MIDDLE[1] + radius * Math.sin(angle)].map((at) => at.toFixed(4));
};

function arc(from, to, radius, className) {
  const [x, y] = turn(from, radius),
    [x2, y2] = turn(to, radius);
  return element("path", {
    d: `M${x} ${y}A${radius} ${radius} 0 0 ${to > from ? 1 : 0} ${x2} ${y2}`,
    class: className,
  });
}

export const times = (factor) =>
  `×${factor < 9.95 ? factor.toFixed(1) : factor < 1e5 ? Math.round(factor).toLocaleString("en") : factor.toExponential(0)}`;

// `change` and `limit` are factors; `left` and `right` name the two places.
export function gauge({ change, limit, left, right }) {
  const most = Math.log(limit),
    share = most > 0 ? Math.log(change) / most : 0;
  const said = share >= 0 ? `${times(change)} towards ${right}` : `${times(1 / change)} towards ${left}`;
  const svg = canvas(
    WIDTH,
    HEIGHT,
    `The report changed the odds ${said}. No report can change them by more than ${times(limit)}.`,
  );
  svg.setAttribute("class", "gauge");
  svg.append(arc(-END, END, RADIUS, "track"));
  svg.append(arc(0, END * share, RADIUS, share >= 0 ? "moved right" : "moved left"));
  for (const side of [-1, 1]) {
    const [x1, y1] = turn(side * END, RADIUS - 11),
      [x2, y2] = turn(side * END, RADIUS + 11);
    svg.append(element("line", { x1, y1, x2, y2, class: "stop" }));
    const [x, y] = turn(side * END, RADIUS + 16);
    svg.append(element("text", { x, y: Number(y) - 2, "text-anchor": side < 0 ? "end" : "start" }, times(limit)));
    svg.append(
      element(
        "text",
        { x, y: Number(y) + 13, "text-anchor": side < 0 ? "end" : "start", class: "soft" },
        side < 0 ? left : right,
      ),
    );
  }
  const [topX, topY] = turn(0, RADIUS + 10);
  svg.append(element("text", { x: topX, y: Number(topY) + 1, "text-anchor": "middle", class: "soft" }, "no change"));
  const [tipX, tipY] = turn(END * share, RADIUS - 4);
  svg.append(
    element("line", { x1: MIDDLE[0], y1: MIDDLE[1], x2: tipX, y2: tipY, class: "needle" }),
    element("circle", { cx: MIDDLE[0], cy: MIDDLE[1], r: 5, class: "hub" }),
  );
  return svg;
}
