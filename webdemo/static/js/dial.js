// One dial for how much privacy, with stops; factor and radius for experts.

import { metres, put } from "./words.js";

const $ = (id) => document.getElementById(id);
const FACTOR = 4;
const STOPS = document.body.dataset.stops.split(" ").map(Number);
const STEP = 5;
const factor = $("factor"),
  radius = $("radius"),
  dial = $("dial");

export const privacy = () => ({ factor: Number(factor.value), radius: Number(radius.value) });

// Between two stops the radius grows by the same factor at every step.
function radiusAt(position) {
  const low = Math.min(Math.floor(position), STOPS.length - 2);
  return Math.round((STOPS[low] * (STOPS[low + 1] / STOPS[low]) ** (position - low)) / STEP) * STEP || STOPS[0];
}

// The same epsilon with the usual factor has this radius.
const usualRadius = () => (privacy().radius * Math.log(FACTOR)) / Math.log(privacy().factor);

function positionOf(within) {
  const low = Math.max(
    0,
    STOPS.findLastIndex((stop, at) => stop <= within && at < STOPS.length - 1),
  );
  return Math.min(
    STOPS.length - 1,
    Math.max(0, low + Math.log(within / STOPS[low]) / Math.log(STOPS[low + 1] / STOPS[low])),
  );
}

export function labels() {
  const { factor: most, radius: within } = privacy();
  put("factor-out", `×${most}`);
  put("radius-out", metres(within));
  put("dial-out", metres(within));
  factor.setAttribute("aria-valuetext", `factor ${most}`);
  radius.setAttribute("aria-valuetext", `${within} metres`);
  dial.setAttribute(
    "aria-valuetext",
    `between places within ${within} metres the odds change by a factor of ${most} at most`,
  );
  for (const button of $("stops").children)
    button.setAttribute("aria-pressed", Math.abs(Number(button.dataset.stop) - Number(dial.value)) < 0.1);
}

// The dial follows the two sliders.
export function follow() {
  dial.value = positionOf(usualRadius());
  labels();
}

export function prepareDial(changed) {
  radius.min = STOPS[0];
  radius.max = STOPS.at(-1);
  radius.defaultValue = STOPS.at(-2);
  const turn = () => {
    radius.value = radiusAt(Number(dial.value));
    factor.value = FACTOR;
    labels();
    changed();
  };
  $("stops").append(
    ...STOPS.map((stop, at) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: metres(stop) });
      button.dataset.stop = String(at);
      button.addEventListener("click", () => {
        dial.value = at;
        turn();
        dial.dispatchEvent(new Event("change", { bubbles: true }));
      });
      return button;
    }),
  );
  dial.addEventListener("input", turn);
  for (const slider of [factor, radius])
    slider.addEventListener("input", () => {
      follow();
      changed();
    });
}
