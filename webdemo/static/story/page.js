// What the parts of the page share: elements, words and colours.

import { factor, many, metres, percent } from "../../device/geoind.js";
import { MAPS, RAMPS, css, shadeOf } from "../js/colours.js";

export const words = { metres, percent, factor, many };
export const $ = (id) => document.getElementById(id);

// The page's colours: those of the instruments, and the map's own in both themes.
export const palette = (() => {
  const LEAST = -3.5; // below one in three thousand a building keeps its own colour
  const NAMES = ["truth", "report", "remapped", "ring", "kept", "missed", "retrieved", "there", "panel", "ink", "heat", "outside"];
  let now = null;
  function read(theme) {
    const made = { theme, ...MAPS[theme], ...Object.fromEntries(NAMES.map((name) => [name, css(name)])) };
    const ramp = [made.buildings, ...RAMPS[theme]];
    made.belief = (share) => shadeOf(ramp, 1 - Math.log10(Math.max(share, 1e-9)) / LEAST);
    return made;
  }
  return () => {
    const theme = document.documentElement.dataset.theme;
    if (now?.theme !== theme) now = read(theme);
    return now;
  };
})();
