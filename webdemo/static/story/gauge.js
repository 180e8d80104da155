// The definition as a gauge: how far a report moves the odds between two places, and the stops that it cannot pass.

const gauge = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  function part(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // On a scale of logarithms, with even odds in the middle and a stop at either end.
  function show(svg, change, limit) {
    const left = 26, right = 294, line = 46, middle = (left + right) / 2, colour = palette();
    const share = limit > 1 ? Math.log(change) / Math.log(limit) : 0, needle = middle + share * (right - middle);
    const odds = change >= 1 ? `${words.factor(change)} : 1 for here` : `${words.factor(1 / change)} : 1 for there`;
    svg.setAttribute("aria-label", `Odds after the report ${odds}; the stop is at ${words.factor(limit)} to 1`);
    svg.replaceChildren(
      part("line", { x1: left, x2: right, y1: line, y2: line, stroke: colour.ring, "stroke-width": 4, "stroke-linecap": "round" }),
      part("line", { x1: middle, x2: needle, y1: line, y2: line, stroke: colour.report, "stroke-width": 8, "stroke-linecap": "round" }),
      ...[left, right].map((x) => part("rect", { x: x - 3, y: line - 14, width: 6, height: 28, rx: 2, fill: colour.missed, class: "stop" })),
      part("circle", { cx: needle, cy: line, r: 9, fill: colour.report, stroke: colour.panel, "stroke-width": 2, class: "needle" }),
      part("text", { x: Math.min(right - 40, Math.max(left + 40, needle)), y: 22, "text-anchor": "middle", "font-weight": 650 }, odds),
      part("text", { x: left - 6, y: 78, class: "soft" }, `1 : ${words.factor(limit)} there`),
      part("text", { x: middle, y: 78, "text-anchor": "middle", class: "soft" }, "even"),
      part("text", { x: right + 6, y: 78, "text-anchor": "end", class: "soft" }, `here ${words.factor(limit)} : 1`),
    );
  }
  return { show };
})();
