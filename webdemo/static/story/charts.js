// Two small charts: how many reports it takes in many runs, and how the belief shrinks in one.

import { canvas, element } from "../js/chart.js";

export const charts = (() => {
  const WIDTH = 300,
    HEIGHT = 96,
    FLOOR = 78,
    LEFT = 26,
    RIGHT = 290,
    TOP = 8;

  const write = (x, y, text, anchor = "middle") =>
    element("text", { x, y, "text-anchor": anchor, class: "soft" }, text);

  // A histogram of counts in order; this run and the reader's guess are marked.
  function histogram(counts, { run, bet, title }) {
    const svg = canvas(WIDTH, HEIGHT, title),
      end = Math.max(counts.at(-1), run ?? 0, 10),
      bins = 22,
      height = new Array(bins).fill(0),
      at = (count) => LEFT + ((RIGHT - LEFT) * Math.min(count, end)) / end;
    for (const count of counts) height[Math.min(bins - 1, Math.floor((bins * count) / end))] += 1;
    const most = Math.max(...height),
      wide = (RIGHT - LEFT) / bins;
    height.forEach((number, i) => {
      const tall = ((FLOOR - TOP) * number) / most;
      svg.append(element("rect", { x: LEFT + i * wide, y: FLOOR - tall, width: wide - 1, height: tall, class: "bar" }));
    });
    svg.append(element("line", { x1: LEFT, y1: FLOOR, x2: RIGHT, y2: FLOOR, class: "axis" }));
    for (const [count, name] of [
      [run, "run"],
      [bet, "bet"],
    ]) {
      if (count) svg.append(element("line", { x1: at(count), y1: TOP - 4, x2: at(count), y2: FLOOR, class: name }));
    }
    svg.append(write(LEFT, HEIGHT - 4, "0"), write(RIGHT, HEIGHT - 4, `${end} reports`, "end"));
    if (run && run < 0.75 * end) svg.append(write(at(run), HEIGHT - 4, "this run"));
    return svg;
  }

  // Buildings that hold 90 % of the belief, by the number of questions on a logarithmic scale.
  function shrinking(history, title) {
    const svg = canvas(WIDTH, HEIGHT, title),
      last = history.at(-1),
      most = Math.max(...history.map(([, count]) => count)),
      x = (asked) => LEFT + ((RIGHT - LEFT) * Math.log(asked)) / Math.log(Math.max(10, last[0])),
      y = (count) => FLOOR - ((FLOOR - TOP) * count) / most,
      points = history.flatMap(([asked, count], i) => [
        ...(i ? [[x(asked), y(history[i - 1][1])]] : []),
        [x(asked), y(count)],
      ]);
    svg.append(
      element("line", { x1: LEFT, y1: FLOOR, x2: RIGHT, y2: FLOOR, class: "axis" }),
      element("polyline", {
        points: points.map((point) => point.map((value) => value.toFixed(2)).join(",")).join(" "),
        class: "left",
      }),
      write(LEFT - 4, TOP + 6, String(most), "end"),
      write(LEFT - 4, FLOOR, "0", "end"),
      write(LEFT, HEIGHT - 4, "1"),
      write(RIGHT, HEIGHT - 4, `${last[0].toLocaleString("en")} questions`, "end"),
    );
    return svg;
  }

  return { histogram, shrinking };
})();
