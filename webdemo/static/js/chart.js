// Small charts as SVG elements.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function canvas(width, height, title) {
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  return svg;
}

// A round number at or above the value, for the end of an axis.
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((step) => step >= value * 0.999);
}
