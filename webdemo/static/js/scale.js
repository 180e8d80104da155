// The scale of every belief: the chance of a place by its logarithm, the same colours everywhere.

import { MAPS, RAMPS, shadeOf } from "./colours.js";

const LEAST = -3.5; // below one in three thousand a building keeps its own colour
const TICKS = [0.001, 0.01, 0.1, 1];

// Where a chance lies between the ends of the scale, 0 and 1.
export const onScale = (chance) => Math.min(1, Math.max(0, 1 - Math.log10(Math.max(chance, 1e-9)) / LEAST));

export function beliefColour(chance) {
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  return shadeOf([MAPS[theme].buildings, ...RAMPS[theme]], onScale(chance));
}

// Fills an element with the bar and its numbers.
export function showScale(box) {
  const part = (className, ...content) => {
    const made = document.createElement("span");
    made.className = className;
    made.append(...content);
    return made;
  };
  const bar = part("ramp"),
    from = onScale(TICKS[0]),
    stops = Array.from({ length: 13 }, (_, i) => beliefColour(10 ** (-LEAST * (from + (i / 12) * (1 - from) - 1))));
  bar.setAttribute("aria-hidden", "true");
  bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
  box.replaceChildren(bar, part("ticks", ...TICKS.map((tick) => part("tick", `${100 * tick} %`))));
}
