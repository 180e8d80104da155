// The colours of the base map in both themes, and of what an observer believes.

export const MAPS = {
  light: {
    ground: "#f4f1ea",
    green: "#d5e5c8",
    water: "#a9cbe0",
    rivers: "#a9cbe0",
    paths: "#e3ddd0",
    streets: "#ffffff",
    main: "#fbe3a8",
    rails: "#b9b4c4",
    buildings: "#ddd5c8",
  },
  dark: {
    ground: "#1d222b",
    green: "#22332b",
    water: "#1d3a50",
    rivers: "#1d3a50",
    paths: "#2b323d",
    streets: "#39424f",
    main: "#5a5240",
    rails: "#4a4658",
    buildings: "#2b313b",
  },
};

// From unlikely to likely: away from the map's own ground, which is light or dark.
export const RAMPS = {
  light: ["#fbe6cf", "#f6ac6b", "#dd6a1d", "#a13a05", "#5d1a00"],
  dark: ["#4a3525", "#8a4f22", "#d0762b", "#ffb46b", "#fff3df"],
};

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

// The colour at a share of a ramp.
export function shadeOf(ramp, share) {
  const at = Math.min(1, Math.max(0, share)) * (ramp.length - 1),
    low = Math.min(ramp.length - 2, Math.floor(at));
  const [from, to] = [channels(ramp[low]), channels(ramp[low + 1])];
  return `rgb(${from.map((value, i) => Math.round(value + (at - low) * (to[i] - value))).join(" ")})`;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
