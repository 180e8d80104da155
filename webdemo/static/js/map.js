// The base map that folium drew, and what the tabs draw on it.

import { css, MAPS } from "./colours.js";

export const map = window.demo_map;
const base = window.demo_base;

const { ground, green, water, rivers, paths, streets, main, rails, buildings } = MAPS.dark;
const DARK_BASE = {
  extent: { fillColor: ground },
  green: { fillColor: green },
  water: { fillColor: water },
  rivers: { color: rivers },
  paths: { color: paths },
  streets: { color: streets },
  main: { color: main },
  rails: { color: rails },
  buildings: { color: "#3a414d", fillColor: buildings },
};

export const colour = {};
export function paint() {
  for (const name of [
    "truth",
    "report",
    "remapped",
    "ring",
    "naive",
    "budgeted",
    "kept",
    "missed",
    "retrieved",
    "there",
    "panel",
  ])
    colour[name] = css(name);
  const dark = document.documentElement.dataset.theme === "dark";
  base.eachLayer((layer) => {
    base.resetStyle(layer);
    if (dark) layer.setStyle(DARK_BASE[layer.feature.properties.kind]);
  });
}

// From the bottom: the base map, what an observer believes, what the tabs draw, pins.
for (const [name, height] of [
  ["belief", 410],
  ["drawn", 450],
]) {
  Object.assign(map.createPane(name).style, { zIndex: height, pointerEvents: "none" });
}
// Little beyond the window: what a browser must paint again at every answer.
const lines = L.svg({ pane: "drawn", padding: 0.3 });
const crowd = L.canvas({ pane: "drawn", padding: 0.15 });

export const circle = (at, radius, colourName, options = {}) =>
  L.circle(at, {
    renderer: lines,
    radius,
    color: colour[colourName],
    weight: 2,
    fill: false,
    interactive: false,
    className: `circle-${colourName}`,
    ...options,
  });
export const dot = (at, colourName, options = {}) =>
  L.circleMarker(at, {
    renderer: lines,
    radius: 7,
    color: colour.panel,
    weight: 2,
    fillColor: colour[colourName],
    fillOpacity: 1,
    interactive: false,
    className: `dot-${colourName}`,
    ...options,
  });
export const speck = (at, colourName, options = {}) =>
  L.circleMarker(at, {
    renderer: crowd,
    radius: 3.5,
    stroke: false,
    fillColor: colour[colourName],
    fillOpacity: 0.5,
    interactive: false,
    ...options,
  });
export const line = (points, colourName, options = {}) =>
  L.polyline(points, {
    renderer: lines,
    color: colour[colourName],
    weight: 3,
    interactive: false,
    className: `line-${colourName}`,
    ...options,
  });
export const diamond = (at, className) =>
  L.marker(at, {
    interactive: false,
    keyboard: false,
    icon: L.divIcon({ className: `diamond ${className}`, iconSize: [14, 14] }),
  });
export const label = (at, text) =>
  L.marker(at, {
    interactive: false,
    keyboard: false,
    icon: L.divIcon({
      className: "ring-label",
      html: `<span>${text}</span>`,
      iconSize: [140, 12],
      iconAnchor: [70, 6],
    }),
  });

// A place for a mark that leaves the marks at `taken` uncovered: its own, or the nearest one that is far enough.
const APART = 24;
export function clearOf(at, taken) {
  let point = map.latLngToContainerPoint(at);
  // Twice: to be clear of one may be to come near another.
  for (const other of [...taken, ...taken]) {
    const from = map.latLngToContainerPoint(other),
      away = point.subtract(from),
      far = Math.hypot(away.x, away.y);
    if (far < APART) point = from.add(far > 0.5 ? away.multiplyBy(APART / far) : L.point(0, APART));
  }
  return point.equals(map.latLngToContainerPoint(at)) ? L.latLng(at) : map.containerPointToLatLng(point);
}

export const north = (at, distance) => [at.lat + distance / 111195, at.lng];

export function metresPerPixel() {
  return (40075016.686 * Math.cos((map.getCenter().lat * Math.PI) / 180)) / 2 ** (map.getZoom() + 8);
}

// Shows what is drawn: zooms out where it does not fit, in where it has become small. A window of another size shows
// the same, until the map is moved.
let wanted = null;
export function fit(bounds, always = false) {
  wanted = bounds;
  const view = map.getBounds();
  const small =
    bounds.getNorth() - bounds.getSouth() < 0.45 * (view.getNorth() - view.getSouth()) &&
    bounds.getEast() - bounds.getWest() < 0.45 * (view.getEast() - view.getWest());
  if (view.contains(bounds) && !small && !always) return;
  map.fitBounds(bounds, { padding: [14, 14], maxZoom: 18, animate: false });
}

export function prepare() {
  const { attribution, tiles } = document.body.dataset;
  // Leaflet reads HTML here, and the name of a file is text.
  const text = document.createElement("span");
  text.textContent = attribution;
  map.attributionControl.setPrefix("Leaflet").addAttribution(text.innerHTML);
  L.control.scale({ imperial: false }).addTo(map);
  L.control.zoom({ position: "topright" }).addTo(map);
  map.options.zoomSnap = 0.25;
  // A double click would place you and zoom at once: the wheel, two fingers, + and - zoom.
  map.doubleClickZoom.disable();
  const bounds = base.getBounds();
  map.setMaxBounds(bounds.pad(1.5));
  if (tiles) {
    document.getElementById("tiles-warning").hidden = false;
    L.tileLayer(tiles, { maxNativeZoom: 19, maxZoom: 21 }).addTo(map);
    map.removeLayer(base);
  }
  map.on("dragstart", () => {
    wanted = null;
  });
  for (const move of ["wheel", "keydown", "touchstart"])
    map.getContainer().addEventListener(
      move,
      () => {
        wanted = null;
      },
      { passive: true },
    );
  new ResizeObserver(() => {
    map.invalidateSize({ animate: false });
    if (wanted && map.getSize().x) fit(wanted, true);
  }).observe(document.getElementById("mapframe"));
  paint();
  return bounds;
}
