// The address: the part or card, the seed, and the settings of a run, so that it repeats. It never holds a place.

import { $ } from "./page.js";
import { scene } from "./scene.js";

export const link = (() => {
  const SLIDERS = ["dial", "budget", "interest"];
  const chosen = () => document.querySelector("input[name=remedy]:checked").value;
  const said = () => new URLSearchParams(location.hash.slice(1));
  const whole = (text, low, high) =>
    /^\d{1,7}$/.test(text ?? "") && Number(text) >= low && Number(text) <= high ? Number(text) : null;

  // Settings that the address names are taken over; what it does not name stays, and what is wrong is left out.
  function read() {
    const asked = said();
    for (const id of SLIDERS) {
      const value = whole(asked.get(id), Number($(id).min), Number($(id).max));
      if (value !== null) $(id).value = value;
    }
    const radio = [...document.querySelectorAll("input[name=remedy]")].find(
      ({ value }) => value === asked.get("remedy"),
    );
    if (radio) radio.checked = true;
    const seed = whole(asked.get("seed"), 0, 999999);
    if (seed !== null && seed !== scene.state.seed) scene.reseed(seed);
    return { part: asked.get("part"), card: Number(asked.get("card") ?? 1) };
  }

  // The view with all that repeats its run.
  function of(view) {
    const settings = SLIDERS.map((id) => [id, $(id).value]);
    return new URLSearchParams([
      ...Object.entries(view),
      ...settings,
      ["remedy", chosen()],
      ["seed", scene.state.seed],
    ]).toString();
  }
  return { read, of };
})();
