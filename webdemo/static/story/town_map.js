// A map on a canvas: the town, what is believed of its buildings, and marks. Metres to the east and north of its centre.

import { pointsOf, posterior } from "./core.js";
import { palette, words } from "./page.js";

const PINS = { you: "truth", there: "there", guess: "remapped" };
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

export class TownMap {
  static LINES = { rivers: 3, paths: 0.6, streets: 2, main: 3.4, rails: 0.6 };
  static ORDER = ["green", "water", "rivers", "paths", "streets", "main", "rails", "buildings"];
  static #paths = {};
  static buildings = TOWN.shapes.buildings.rings.map((rings) => TownMap.#path(rings, true));
  static bounds = TOWN.bounds.map((value) => value / 10);

  static #path(rings, closed) {
    const path = new Path2D();
    for (const ring of rings) {
      pointsOf(ring).forEach(({ x, y }, i) => {
        path[i ? "lineTo" : "moveTo"](x, y);
      });
      if (closed) path.closePath();
    }
    return path;
  }
  static #shape(kind) {
    const { area, rings } = TOWN.shapes[kind];
    return (TownMap.#paths[kind] ??= TownMap.#path(rings.flat(), area));
  }

  // All maps show the same part of the town.
  static #maps = [];
  static #view = { zoom: 1, at: null };
  static MOST = 12;

  static wholeTown() {
    TownMap.#view = { zoom: 1, at: null };
  }
  // Closer by a factor around a place, or around the middle of the map.
  static zoom(by, around = null) {
    const [map] = TownMap.#maps,
      old = TownMap.#view,
      zoom = Math.max(1, Math.min(TownMap.MOST, old.zoom * by));
    const middle = map.metres(map.width / 2, map.height / 2),
      fixed = around ?? middle,
      share = old.zoom / zoom;
    const at = { x: fixed.x + (middle.x - fixed.x) * share, y: fixed.y + (middle.y - fixed.y) * share };
    TownMap.#view = zoom > 1 ? { zoom, at } : { zoom: 1, at: null };
    for (const each of TownMap.#maps) each.draw();
  }

  static within({ x, y }) {
    const [west, south, east, north] = TownMap.bounds;
    return { x: Math.max(west, Math.min(east, x)), y: Math.max(south, Math.min(north, y)) };
  }

  #canvas;
  #base = document.createElement("canvas");
  #drawn = "";
  #scene = {};
  #pins = {};
  #box;
  #bar;
  #taken = [];
  grounded = true; // false where the town is not below: a visitor's own day may be anywhere
  scale = 1;
  left = 0;
  top = 0;

  constructor(box, { click = null, bar = true } = {}) {
    this.#box = box;
    this.#canvas = box.querySelector("canvas");
    this.#bar = bar;
    TownMap.#maps.push(this);
    this.#canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        TownMap.zoom(
          Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) / 300),
          this.metres(event.offsetX, event.offsetY),
        );
      },
      { passive: false },
    );
    new ResizeObserver(() => this.draw()).observe(box);
    if (click) this.#canvas.addEventListener("click", (event) => click(this.metres(event.offsetX, event.offsetY)));
  }

  pixel(at) {
    return { x: (at.x - this.left) * this.scale, y: (this.top - at.y) * this.scale };
  }
  metres(x, y) {
    return { x: this.left + x / this.scale, y: this.top - y / this.scale };
  }

  get width() {
    return this.#box.clientWidth;
  }
  get height() {
    return this.#box.clientHeight;
  }
  get visible() {
    return this.width > 0 && this.height > 0;
  }

  show(scene) {
    this.#scene = scene;
    this.draw();
  }

  // The whole town, and what lies around it; or, with a focus, as close as the window allows without leaving it.
  #fit(width, height) {
    const { bounds = TownMap.bounds, keep = [], focus = null } = this.#scene;
    const [west, south, east, north] = TownMap.#around(bounds, keep);
    const scaleOf = (box) => Math.min(width / (box[2] - box[0]), height / (box[3] - box[1])) / 1.04;
    this.scale = scaleOf([west, south, east, north]);
    let centre = [(west + east) / 2, (south + north) / 2];
    if (focus) {
      const [first, ...others] = focus,
        near = TownMap.#around([first.x, first.y, first.x, first.y], [first, ...others]);
      const cover = Math.max(width / (east - west), height / (north - south));
      this.scale = Math.max(this.scale, Math.min(cover, scaleOf(near)));
      const within = (at, low, high, span) =>
        high - low <= span ? (low + high) / 2 : Math.max(low + span / 2, Math.min(high - span / 2, at));
      centre = [
        within((near[0] + near[2]) / 2, west, east, width / this.scale),
        within((near[1] + near[3]) / 2, south, north, height / this.scale),
      ];
    }
    const { zoom, at } = TownMap.#view;
    if (at) {
      // No part of the window lies outside of what is shown without zoom.
      const limit = (value, middle, span) => Math.max(middle - span, Math.min(middle + span, value)),
        rest = (1 - 1 / zoom) / 2;
      centre = [
        limit(at.x, centre[0], (rest * width) / this.scale),
        limit(at.y, centre[1], (rest * height) / this.scale),
      ];
      this.scale *= zoom;
    }
    this.left = centre[0] - width / this.scale / 2;
    this.top = centre[1] + height / this.scale / 2;
  }

  static #around([west, south, east, north], points) {
    for (const { x, y, radius = 0 } of points) {
      west = Math.min(west, x - radius);
      east = Math.max(east, x + radius);
      south = Math.min(south, y - radius);
      north = Math.max(north, y + radius);
    }
    return [west, south, east, north];
  }

  draw() {
    const width = this.#box.clientWidth,
      height = this.#box.clientHeight,
      dense = window.devicePixelRatio || 1;
    if (!width || !height) return;
    const size = [Math.round(width * dense), Math.round(height * dense)];
    if (this.#canvas.width !== size[0] || this.#canvas.height !== size[1])
      [this.#canvas.width, this.#canvas.height] = size;
    this.#fit(width, height);
    const pen = this.#canvas.getContext("2d"),
      scene = this.#scene;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.#ground(size, dense), 0, 0);
    this.#toMetres(pen, dense);
    if (scene.belief && this.grounded) this.#believe(pen, scene.belief);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    this.#taken = Object.values(scene.pins ?? {}).map(({ at }) => {
      const { x, y } = this.pixel(at);
      return [x - 9, y - 9, x + 9, y + 9];
    });
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
    const colour = palette(),
      key = [...size, this.scale, this.left, this.top, colour.theme].join(" ");
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
      if (TOWN.shapes[kind].area) {
        pen.fill(TownMap.#shape(kind), "evenodd");
        continue;
      }
      pen.lineWidth = Math.max(2 * TownMap.LINES[kind], 0.7 / this.scale);
      pen.stroke(TownMap.#shape(kind));
    }
    return this.#base;
  }

  // Each building in the colour of its probability; those that hold nine tenths of the belief have a border.
  #believe(pen, belief) {
    const colour = palette(),
      inside = new Set(posterior.likeliest(belief, 0.9)),
      half = new Set(posterior.likeliest(belief, 0.5));
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

  #mark(pen, { kind, at, to = null, radius = undefined, colour, text = "", fill = undefined, path = [] }) {
    const ink = palette(),
      tint = ink[colour] ?? colour,
      here = at && this.pixel(at);
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    pen.strokeStyle = pen.fillStyle = tint;
    pen.setLineDash([]);
    pen.beginPath();
    if (kind === "circle") {
      pen.arc(here.x, here.y, radius * this.scale, 0, 2 * Math.PI);
      pen.stroke();
      pen.globalAlpha = fill ?? 0.08;
      pen.fill();
    } else if (kind === "line") {
      const end = this.pixel(to);
      pen.setLineDash([3, 4]);
      pen.moveTo(here.x, here.y);
      pen.lineTo(end.x, end.y);
      pen.stroke();
    } else if (kind === "path") {
      pen.globalAlpha = 0.75;
      path.forEach((point, i) => {
        const p = this.pixel(point);
        pen[i ? "lineTo" : "moveTo"](p.x, p.y);
      });
      pen.stroke();
    } else if (kind === "speck") {
      pen.globalAlpha = fill ?? 0.55;
      pen.arc(here.x, here.y, radius ?? 3.5, 0, 2 * Math.PI);
      pen.fill();
    } else if (kind === "ring") {
      pen.arc(here.x, here.y, 7, 0, 2 * Math.PI);
      pen.lineWidth = 3;
      pen.stroke();
    } else if (kind === "diamond") {
      pen.moveTo(here.x, here.y - 8);
      pen.lineTo(here.x + 8, here.y);
      pen.lineTo(here.x, here.y + 8);
      pen.lineTo(here.x - 8, here.y);
      pen.closePath();
      pen.fill();
      pen.strokeStyle = ink.panel;
      pen.stroke();
    } else {
      pen.arc(here.x, here.y, radius ?? 7, 0, 2 * Math.PI);
      pen.fill();
      pen.strokeStyle = ink.panel;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    if (text && here) this.#label(pen, text, here, kind === "circle" ? radius * this.scale + 4 : 12);
  }

  // A name below its mark, because pins stand above their places; above, or to a side, where another one is.
  #label(pen, text, { x, y }, away) {
    const ink = palette(),
      big = document.documentElement.hasAttribute("data-large") ? 1.5 : 1,
      high = 17 * big;
    pen.font = `600 ${12 * big}px system-ui, sans-serif`;
    const wide = pen.measureText(text).width + 10,
      span = (low, size, most) => Math.max(2, Math.min(low, most - size - 2));
    const boxes = [
      [x - wide / 2, y + away],
      [x - wide / 2, y - away - high],
      [x + away, y - high / 2],
      [x - away - wide, y - high / 2],
      [x - wide / 2, y + away + high + 4],
      [x - wide / 2, y - away - 2 * high - 4],
    ].map(([left, top]) => {
      const from = span(left, wide, this.width),
        over = span(top, high, this.height);
      return [from, over, from + wide, over + high];
    });
    const box = boxes.find((one) => !this.#taken.some((other) => overlap(one, other))) ?? boxes[0];
    this.#taken.push(box);
    pen.fillStyle = ink.panel;
    pen.beginPath();
    pen.roundRect(box[0], box[1], wide, high, 5);
    pen.fill();
    pen.fillStyle = ink.ink;
    pen.fillText(text, box[0] + 5, box[1] + 13 * big);
  }

  #scaleBar(pen, width, height) {
    const ink = palette(),
      most = Math.min(110, width / 3) / this.scale,
      power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((digit) => digit * power).find((value) => value <= most);
    pen.fillStyle = ink.ink;
    pen.font = "11px system-ui, sans-serif";
    pen.fillRect(10, height - 12, length * this.scale, 3);
    pen.fillText(words.metres(length), 10, height - 17);
  }

  // Pins are buttons: a hand drags them, arrow keys move them by ten metres, with Shift by a hundred.
  #placePins(pins) {
    for (const name of Object.keys(this.#pins)) this.#pins[name].hidden = !(name in pins);
    const placed = [];
    for (const [name, { at, text, move }] of Object.entries(pins)) {
      const pin = (this.#pins[name] ??= this.#makePin(name)),
        { x, y } = this.pixel(at);
      pin.textContent = text;
      pin.setAttribute("aria-label", `${text}: drag, or move with the arrow keys`);
      pin.style.left = `${x}px`;
      pin.style.top = `${y}px`;
      // Its name stays on the map; the dot below stays on its place.
      const half = pin.offsetWidth / 2 + 2,
        aside = Math.max(half, Math.min(x, this.width - half)) - x,
        high = pin.offsetHeight;
      pin.style.setProperty("--aside", `${aside}px`);
      // A name is above its place, or below it where another name is already.
      const box = (top) => [x + aside - half, top, x + aside + half, top + high],
        taken = placed.some((other) => overlap(box(y - high - 9), other));
      pin.classList.toggle("below", taken);
      placed.push(box(taken ? y + 9 : y - high - 9));
      pin.at = at;
      pin.move = move;
    }
  }

  // Into another canvas, as wide as is wanted: the map, and its pins as dots with names.
  paint(pen, left, top, wide) {
    const k = wide / this.width;
    pen.save();
    pen.translate(left, top);
    pen.drawImage(this.#canvas, 0, 0, wide, this.height * k);
    pen.scale(k, k);
    this.#taken = [];
    for (const [name, { at, text }] of Object.entries(this.#scene.pins ?? {})) {
      this.#mark(pen, { kind: "dot", at, colour: PINS[name], text });
    }
    pen.restore();
  }

  #makePin(name) {
    const pin = document.createElement("button"),
      far = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] };
    pin.type = "button";
    pin.className = `handle handle-${name}`;
    let held = null;
    pin.addEventListener("pointerdown", (event) => {
      const { x, y } = this.pixel(pin.at);
      held = { x: x - event.clientX, y: y - event.clientY };
      pin.setPointerCapture(event.pointerId);
    });
    pin.addEventListener("pointermove", (event) => {
      if (held) pin.move(this.metres(event.clientX + held.x, event.clientY + held.y));
    });
    for (const end of ["pointerup", "pointercancel"])
      pin.addEventListener(end, () => {
        held = null;
      });
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
