// Numbers and colours for people.

const words = {
  metres: (value) => (value < 9.95 ? `${value.toFixed(value < 1 ? 1 : 0)} m` : value < 995 ? `${Math.round(value)} m` : `${(value / 1000).toFixed(value < 9950 ? 1 : 0)} km`),
  percent: (share) => (share >= 0.995 && share < 1 ? "more than 99 %" : share >= 0.0995 || share === 0 ? `${Math.round(100 * share)} %` : `${(100 * share).toPrecision(2)} %`),
  factor: (value) => (value < 9.95 ? value.toFixed(1) : value < 1e4 ? Math.round(value).toString() : `10^${Math.round(Math.log10(value))}`),
  many: (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`,
};

const $ = (id) => document.getElementById(id);
// A number and its unit stay on one line.
const unbroken = (text) => String(text).replace(/(?<=\d) (?=%|k?m\b)/g, "\u00a0");
const put = (id, text) => { $(id).textContent = unbroken(text); };

// The page's colours: those of the instruments, and the map's own in both themes.
const palette = (() => {
  const MAPS = {
    light: { ground: "#f4f1ea", green: "#d5e5c8", water: "#a9cbe0", rivers: "#a9cbe0", paths: "#e3ddd0", streets: "#ffffff", main: "#fbe3a8", rails: "#b9b4c4", buildings: "#ddd5c8" },
    dark: { ground: "#1d222b", green: "#22332b", water: "#1d3a50", rivers: "#1d3a50", paths: "#2b323d", streets: "#39424f", main: "#5a5240", rails: "#4a4658", buildings: "#2b313b" },
  };
  // From unlikely to likely, away from the ground, which is light or dark: as in the instruments.
  const RAMPS = { light: ["#fbe6cf", "#f6ac6b", "#dd6a1d", "#a13a05", "#5d1a00"], dark: ["#4a3525", "#8a4f22", "#d0762b", "#ffb46b", "#fff3df"] };
  const LEAST = -3.5; // below one in three thousand a building keeps its own colour
  let now = null;
  const numbers = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  function read(theme) {
    const style = getComputedStyle(document.documentElement), made = { theme, ...MAPS[theme] };
    for (const name of ["truth", "report", "remapped", "ring", "kept", "missed", "retrieved", "there", "panel", "ink", "heat", "outside"]) made[name] = style.getPropertyValue(`--${name}`).trim();
    const ramp = [made.buildings, ...RAMPS[theme]].map(numbers), last = ramp.length - 1;
    made.belief = (share) => {
      const at = last * Math.max(0, Math.min(1, 1 - Math.log10(Math.max(share, 1e-9)) / LEAST)), low = Math.min(last - 1, Math.floor(at));
      return `rgb(${ramp[low].map((value, i) => Math.round(value + (at - low) * (ramp[low + 1][i] - value))).join(" ")})`;
    };
    return made;
  }
  return () => {
    const theme = document.documentElement.dataset.theme;
    if (now?.theme !== theme) now = read(theme);
    return now;
  };
})();
