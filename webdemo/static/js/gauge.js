// A gauge of odds on a fixed logarithmic scale: the needle shows what a report did, the stops what no report can exceed.

import { canvas, element } from "./chart.js";
import { times } from "./words.js";

const WIDTH = 300,
  HEIGHT = 122,
  MIDDLE = [150, 110],
  RADIUS = 84,
  END = 75,
  DECADES = 3,
  BEYOND = 83;

// Degrees to the right of straight up; what lies beyond the scale is shown past its end.
const degreesOf = (factor) => {
  const angle = (END * Math.log10(factor)) / DECADES;
  return Math.abs(angle) > END ? Math.sign(angle) * BEYOND : angle;
};

const turn = (degrees, radius) => {
  const angle = ((degrees - 90) * Math.PI) / 180;
  return [MIDDLE[0] + radius * Math.cos(angle), MIDDLE[1] + radius * Math.sin(angle)].map((at) => at.toFixed(4));
};

function arc(from, to, className) {
  const [x, y] = turn(from, RADIUS),
    [x2, y2] = turn(to, RADIUS);
  return element("path", {
    d: `M${x} ${y}A${RADIUS} ${RADIUS} 0 0 ${to > from ? 1 : 0} ${x2} ${y2}`,
    class: className,
  });
}

function across(degrees, half, className) {
  const [x1, y1] = turn(degrees, RADIUS - half),
    [x2, y2] = turn(degrees, RADIUS + half);
  return element("line", { x1, y1, x2, y2, class: className });
}

// `change` and `limit` are factors; `left` and `right` name the two places.
export function gauge({ change, limit, left, right }) {
  const said = change >= 1 ? `${times(change)} towards ${right}` : `${times(1 / change)} towards ${left}`;
  const svg = canvas(
    WIDTH,
    HEIGHT,
    `The report changed the odds ${said}. No report can change them by more than ${times(limit)}.`,
  );
  svg.setAttribute("class", "gauge");
  svg.append(
    arc(-END, END, "track"),
    arc(-degreesOf(limit), degreesOf(limit), "possible"),
    arc(0, degreesOf(change), change >= 1 ? "moved right" : "moved left"),
  );
  for (const side of [-1, 1]) {
    const anchor = side < 0 ? "end" : "start";
    for (let decade = side < 0 ? 1 : 0; decade <= DECADES; decade += 1) {
      const at = (side * decade * END) / DECADES,
        [x, y] = turn(at, RADIUS + 10);
      svg.append(
        across(at, 5, "tick"),
        element(
          "text",
          { x, y: Number(y) + (decade ? 3 : -2), "text-anchor": decade ? anchor : "middle", class: "soft" },
          decade ? times(10 ** decade) : "no change",
        ),
      );
    }
    const stop = side * degreesOf(limit),
      [x, y] = turn(stop + side * 5, RADIUS - 13);
    svg.append(
      across(stop, 11, "stop"),
      // Inside, past the stop: the needle does not get there.
      element("text", { x, y: Number(y) + 6, "text-anchor": side < 0 ? "end" : "start" }, times(limit)),
    );
    const [endX] = turn(side * END, RADIUS + 12);
    svg.append(
      element("text", { x: endX, y: HEIGHT - 12, "text-anchor": anchor, class: "soft" }, side < 0 ? left : right),
    );
  }
  const [tipX, tipY] = turn(degreesOf(change), RADIUS - 4);
  svg.append(
    element("line", { x1: MIDDLE[0], y1: MIDDLE[1], x2: tipX, y2: tipY, class: "needle" }),
    element("circle", { cx: MIDDLE[0], cy: MIDDLE[1], r: 5, class: "hub" }),
  );
  return svg;
}
