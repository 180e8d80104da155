// The view in the address: every control that differs from its usual value, and places only when asked.

const $ = (id) => document.getElementById(id);
const controls = (root) =>
  [...root.querySelectorAll("input[id], select[id], input[type=radio]")].filter(
    (control) => !("derived" in control.dataset),
  );
const nameOf = (control) => (control.type === "radio" ? control.name : control.id);
const usualOption = (select) =>
  ([...select.options].find((option) => option.defaultSelected) ?? select.options[0])?.value ?? "";

// What the address says about controls that do not exist yet: Compare makes its own when it is opened.
let later = new Map();

const valueIn = (control) => (control.type === "checkbox" ? (control.checked ? "1" : "0") : control.value);
function usualOf(control) {
  if (control.type === "checkbox") return control.defaultChecked ? "1" : "0";
  return control.tagName === "SELECT" ? usualOption(control) : control.defaultValue;
}

function accepts(control, value) {
  if (control.tagName === "SELECT") return [...control.options].some((option) => option.value === value);
  return control.type !== "range" || (value !== "" && Number.isFinite(Number(value)));
}

function set(control, value) {
  const wanted = value !== null && accepts(control, value) ? value : null;
  if (control.type === "radio") control.checked = value === null ? control.defaultChecked : control.value === value;
  else if (control.type === "checkbox") control.checked = (wanted ?? usualOf(control)) === "1";
  else control.value = wanted ?? usualOf(control);
}

function mend(root) {
  // An unknown value leaves a group of radios without a choice: the usual one it is.
  for (const radio of root.querySelectorAll("input[type=radio]")) {
    if (radio.defaultChecked && !root.querySelector(`input[name="${radio.name}"]:checked`)) radio.checked = true;
  }
}

export const read = () => new URLSearchParams(location.hash.slice(1));

// Sets every control: to what the address says, else to its usual value. `others` are names that are no controls.
export function restore(state, others) {
  const known = new Set(others);
  for (const control of controls($("panel"))) {
    known.add(nameOf(control));
    set(control, state.get(nameOf(control)));
  }
  mend($("panel"));
  later = new Map([...state].filter(([name]) => !known.has(name)));
}

// Controls that have just been made take what the address said about them.
export function adopt(root) {
  for (const control of controls(root)) {
    if (later.has(nameOf(control))) set(control, later.get(nameOf(control)));
  }
  mend(root);
  for (const control of controls(root)) later.delete(nameOf(control));
}

// Writes the view; `step` adds an entry to the history.
export function write(first, last, { step = false } = {}) {
  const state = new URLSearchParams({ ...first, ...Object.fromEntries(later) });
  for (const control of controls($("panel"))) {
    if (control.type === "radio" ? control.checked && !control.defaultChecked : valueIn(control) !== usualOf(control))
      state.set(nameOf(control), valueIn(control));
  }
  for (const [name, value] of Object.entries(last)) state.set(name, value);
  const address = `#${state}`;
  if (address === location.hash) return;
  if (step) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
