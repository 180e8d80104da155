// A map on a canvas: the town, what is believed of its buildings, and marks. Metres to the east and north of its centre.

import { palette, words } from "./page.js";
import { posterior } from "./posterior.js";

export const homes = (() => {
  const { xy, building, mass } = TOWN.homes, sum = mass.reduce((a, b) => a + b, 0);
  return {
    x: Float64Array.from(building, (_, i) => xy[2 * i] / 10), y: Float64Array.from(building, (_, i) => xy[2 * i + 1] / 10),
    building, mass: mass.map((value) => value / sum),
  };
})();

export class TownMap {
  static LINES = { rivers: 3, paths: 0.6, streets: 2, main: 3.4, rails: 0.6 };
  static ORDER = ["green", "water", "rivers", "paths", "streets", "main", "rails", "buildings"];
  static #paths = {};
  static buildings = TOWN.shapes.buildings.rings.map((rings) => TownMap.#path(rings, true));
  static bounds = TOWN.bounds.map((value) => value / 10);

  static #path(rings, closed) {
    const path = new Path2D();
    for (const ring of rings) {
      for (let i = 0; i < ring.length; i += 2) path[i ? "lineTo" : "moveTo"](ring[i] / 10, ring[i + 1] / 10);
      if (closed) path.closePath();
    }
    return path;
  }
  static #shape(kind) {
    const { area, rings } = TOWN.shapes[kind];
    return (TownMap.#paths[kind] ??= TownMap.#path(rings.flat(), area));
  }

  #canvas; #base = document.createElement("canvas"); #drawn = ""; #scene = {}; #pins = {}; #box; #bar;
  grounded = true; // false where the town is not below: somebody's own day may be anywhere
  scale = 1; left = 0; top = 0;

  constructor(box, { click = null, bar = true } = {}) {
    this.#box = box;
    this.#canvas = box.querySelector("canvas");
    this.#bar = bar;
    new ResizeObserver(() => this.draw()).observe(box);
    if (click) this.#canvas.addEventListener("click", (event) => click(this.metres(event.offsetX, event.offsetY)));
  }

  pixel(at) { return { x: (at.x - this.left) * this.scale, y: (this.top - at.y) * this.scale }; }
  metres(x, y) { return { x: this.left + x / this.scale, y: this.top - y / this.scale }; }

  show(scene) { this.#scene = scene; this.draw(); }

  // The whole town, and what lies around it; or, with a focus, as close as the window allows without leaving it.
  #fit(width, height) {
    const { bounds = TownMap.bounds, keep = [], focus = null } = this.#scene;
    const [west, south, east, north] = TownMap.#around(bounds, keep);
    const scaleOf = (box) => Math.min(width / (box[2] - box[0]), height / (box[3] - box[1])) / 1.04;
    this.scale = scaleOf([west, south, east, north]);
    let centre = [(west + east) / 2, (south + north) / 2];
    if (focus) {
      const [first, ...others] = focus, near = TownMap.#around([first.x, first.y, first.x, first.y], [first, ...others]);
      const cover = Math.max(width / (east - west), height / (north - south));
      this.scale = Math.max(this.scale, Math.min(cover, scaleOf(near)));
      const within = (at, low, high, span) => (high - low <= span ? (low + high) / 2 : Math.max(low + span / 2, Math.min(high - span / 2, at)));
      centre = [within((near[0] + near[2]) / 2, west, east, width / this.scale), within((near[1] + near[3]) / 2, south, north, height / this.scale)];
    }
    this.left = centre[0] - width / this.scale / 2;
    this.top = centre[1] + height / this.scale / 2;
  }

  static #around([west, south, east, north], points) {
    for (const { x, y, radius = 0 } of points) {
      west = Math.min(west, x - radius); east = Math.max(east, x + radius); south = Math.min(south, y - radius); north = Math.max(north, y + radius);
    }
    return [west, south, east, north];
  }

  draw() {
    const width = this.#box.clientWidth, height = this.#box.clientHeight, dense = window.devicePixelRatio || 1;
    if (!width || !height) return;
    const size = [Math.round(width * dense), Math.round(height * dense)];
    if (this.#canvas.width !== size[0] || this.#canvas.height !== size[1]) [this.#canvas.width, this.#canvas.height] = size;
    this.#fit(width, height);
    const pen = this.#canvas.getContext("2d"), scene = this.#scene;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.#ground(size, dense), 0, 0);
    this.#toMetres(pen, dense);
    if (scene.belief && this.grounded) this.#believe(pen, scene.belief);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    for (const mark of scene.marks ?? []) this.#mark(pen, mark);
    if (this.#bar) this.#scaleBar(pen, width, height);
    this.#placePins(scene.pins ?? {});
    if (scene.words) this.#canvas.setAttribute("aria-label", scene.words);
  }

  #toMetres(pen, dense) {
    const k = this.scale * dense;
    pen.setTransform(k, 0, 0, -k, -this.left * k, this.top * k);
  }

  // The town itself is drawn once for a size, a view and a theme.
  #ground(size, dense) {
    const colour = palette(), key = [...size, this.scale, this.left, this.top, colour.theme].join(" ");
    if (key === this.#drawn) return this.#base;
    this.#drawn = key;
    [this.#base.width, this.#base.height] = size;
    const pen = this.#base.getContext("2d");
    pen.fillStyle = colour.outside;
    pen.fillRect(0, 0, size[0], size[1]);
    this.#toMetres(pen, dense);
    const [west, south, east, north] = TownMap.bounds;
    pen.fillStyle = colour.ground;
    if (this.grounded) pen.fillRect(west, south, east - west, north - south);
    for (const kind of TownMap.ORDER) {
      if (!this.grounded || !TOWN.shapes[kind]) continue;
      pen.fillStyle = pen.strokeStyle = colour[kind];
      if (TOWN.shapes[kind].area) { pen.fill(TownMap.#shape(kind), "evenodd"); continue; }
      pen.lineWidth = Math.max(2 * TownMap.LINES[kind], 0.7 / this.scale);
      pen.stroke(TownMap.#shape(kind));
    }
    return this.#base;
  }

  // Each building in the colour of its probability; those that hold nine tenths of the belief have a border.
  #believe(pen, belief) {
    const colour = palette(), inside = new Set(posterior.likeliest(belief, 0.9)), half = new Set(posterior.likeliest(belief, 0.5));
    belief.forEach((share, number) => {
      const path = TownMap.buildings[number];
      pen.fillStyle = colour.belief(share);
      pen.fill(path, "evenodd");
      if (!inside.has(number)) return;
      pen.strokeStyle = colour.heat;
      pen.lineWidth = (half.has(number) ? 2.2 : 0.9) / this.scale;
      pen.stroke(path);
    });
  }

  #mark(pen, { kind, at, to, radius, colour, text, fill, path }) {
    const ink = palette(), tint = ink[colour] ?? colour, here = at && this.pixel(at);
    pen.globalAlpha = 1; pen.lineWidth = 2; pen.strokeStyle = pen.fillStyle = tint; pen.setLineDash([]);
    pen.beginPath();
    if (kind === "circle") {
      pen.arc(here.x, here.y, radius * this.scale, 0, 2 * Math.PI);
      pen.stroke();
      pen.globalAlpha = fill ?? 0.08; pen.fill();
    } else if (kind === "line") {
      const end = this.pixel(to);
      pen.setLineDash([3, 4]); pen.moveTo(here.x, here.y); pen.lineTo(end.x, end.y); pen.stroke();
    } else if (kind === "path") {
      pen.globalAlpha = 0.75;
      path.forEach((point, i) => { const p = this.pixel(point); pen[i ? "lineTo" : "moveTo"](p.x, p.y); });
      pen.stroke();
    } else if (kind === "speck") {
      pen.globalAlpha = fill ?? 0.55; pen.arc(here.x, here.y, radius ?? 3.5, 0, 2 * Math.PI); pen.fill();
    } else if (kind === "diamond") {
      pen.moveTo(here.x, here.y - 8); pen.lineTo(here.x + 8, here.y); pen.lineTo(here.x, here.y + 8); pen.lineTo(here.x - 8, here.y); pen.closePath();
      pen.fill(); pen.strokeStyle = ink.panel; pen.stroke();
    } else {
      pen.arc(here.x, here.y, radius ?? 7, 0, 2 * Math.PI); pen.fill(); pen.strokeStyle = ink.panel; pen.stroke();
    }
    pen.globalAlpha = 1;
    // Below, because pins stand above their places.
    if (text && here) this.#label(pen, text, here.x, here.y + (kind === "circle" ? radius * this.scale + 4 : 12));
  }

  #label(pen, text, x, y) {
    const ink = palette();
    pen.font = "600 12px system-ui, sans-serif";
    const wide = pen.measureText(text).width + 10, from = Math.max(2, Math.min(x - wide / 2, this.#box.clientWidth - wide - 2)), top = Math.max(2, Math.min(y, this.#box.clientHeight - 20));
    pen.fillStyle = ink.panel;
    pen.beginPath(); pen.roundRect(from, top, wide, 17, 5); pen.fill();
    pen.fillStyle = ink.ink;
    pen.fillText(text, from + 5, top + 13);
  }

  #scaleBar(pen, width, height) {
    const ink = palette(), most = Math.min(110, width / 3) / this.scale, power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((digit) => digit * power).find((value) => value <= most);
    pen.fillStyle = ink.ink; pen.font = "11px system-ui, sans-serif";
    pen.fillRect(10, height - 12, length * this.scale, 3);
    pen.fillText(words.metres(length), 10, height - 17);
  }

  // Pins are buttons: a hand drags them, arrow keys move them by ten metres, with Shift by a hundred.
  #placePins(pins) {
    for (const name of Object.keys(this.#pins)) this.#pins[name].hidden = !(name in pins);
    for (const [name, { at, text, move }] of Object.entries(pins)) {
      const pin = (this.#pins[name] ??= this.#makePin(name)), { x, y } = this.pixel(at);
      pin.textContent = text;
      pin.setAttribute("aria-label", `${text}: drag, or move with the arrow keys`);
      pin.style.left = `${x}px`; pin.style.top = `${y}px`;
      // Its name stays on the map; the dot below stays on its place.
      const half = pin.offsetWidth / 2 + 2, aside = Math.max(half, Math.min(x, this.#box.clientWidth - half)) - x;
      pin.style.setProperty("--aside", `${aside}px`);
      pin.at = at; pin.move = move;
    }
  }

  #makePin(name) {
    const pin = document.createElement("button"), far = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] };
    pin.type = "button";
    pin.className = `handle handle-${name}`;
    let held = null;
    pin.addEventListener("pointerdown", (event) => {
      const { x, y } = this.pixel(pin.at);
      held = { x: x - event.clientX, y: y - event.clientY };
      pin.setPointerCapture(event.pointerId);
    });
    pin.addEventListener("pointermove", (event) => { if (held) pin.move(this.metres(event.clientX + held.x, event.clientY + held.y)); });
    for (const end of ["pointerup", "pointercancel"]) pin.addEventListener(end, () => { held = null; });
    pin.addEventListener("keydown", (event) => {
      const by = far[event.key];
      if (!by) return;
      event.preventDefault();
      const times = event.shiftKey ? 10 : 1;
      pin.move({ x: pin.at.x + times * by[0], y: pin.at.y + times * by[1] });
    });
    this.#box.append(pin);
    return pin;
  }
}
