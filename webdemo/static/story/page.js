// What the parts of the page share: elements, words and colours.

import { factor, many, metres, percent } from "../../device/geoind.js";
import { css, MAPS } from "../js/colours.js";
import { beliefColour } from "../js/scale.js";

export const words = { metres, percent, factor, many };
export const $ = (id) => document.getElementById(id);

// The page's colours: those of the instruments, and the map's own in both themes.
export const palette = (() => {
  const NAMES = [
    "truth",
    "report",
    "remapped",
    "ring",
    "kept",
    "missed",
    "retrieved",
    "there",
    "panel",
    "ink",
    "heat",
    "outside",
  ];
  let now = null;
  function read(theme) {
    return {
      theme,
      belief: beliefColour,
      ...MAPS[theme],
      ...Object.fromEntries(NAMES.map((name) => [name, css(name)])),
    };
  }
  return () => {
    const theme = document.documentElement.dataset.theme;
    if (now?.theme !== theme) now = read(theme);
    return now;
  };
})();
