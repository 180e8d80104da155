// A pin that is dragged by mouse, by finger, or with the arrow keys.

import { map } from "./map.js";

const STEP = 10,
  STRIDE = 60,
  REST = 350,
  ROOM = 70;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// `moving` is called at every step, `moved` when the pin rests.
export function makePin(at, { name, text, label, side = "right", moving, moved }) {
  const icon = L.divIcon({ className: `pin pin-${name}`, iconSize: [44, 44] });
  const pin = L.marker(at, {
    icon,
    draggable: true,
    autoPan: true,
    zIndexOffset: 1000,
    title: "",
    alt: label,
    riseOnHover: true,
  });
  pin.bindTooltip(text, {
    permanent: true,
    direction: side,
    offset: [side === "right" ? 12 : -12, 0],
    className: `pin-label pin-label-${name}`,
  });
  let resting = null;
  // Its name stands on the other side where the map ends.
  const turnName = () => {
    const { x } = map.latLngToContainerPoint(pin.getLatLng()),
      room = { left: x, right: map.getSize().x - x },
      name = pin.getTooltip();
    const turned = room[side] < ROOM ? { left: "right", right: "left" }[side] : side;
    if (name.options.direction === turned) return;
    Object.assign(name.options, { direction: turned, offset: L.point(turned === "right" ? 12 : -12, 0) });
    name.update();
  };
  pin.on("move add", turnName);
  map.on("moveend resize", turnName);
  pin.on("drag", () => moving(pin.getLatLng()));
  pin.on("dragend", () => moved(pin.getLatLng()));
  pin.on("add", () => {
    const element = pin.getElement();
    element.setAttribute("aria-label", label);
    element.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      // Enter and the rest are not for the map below.
      if (!arrow) {
        if (event.key === "Enter") event.stopPropagation();
        return;
      }
      event.preventDefault();
      event.stopPropagation();
      const far = event.shiftKey ? STRIDE : STEP;
      pin.setLatLng(
        map.containerPointToLatLng(map.latLngToContainerPoint(pin.getLatLng()).add([far * arrow[0], far * arrow[1]])),
      );
      moving(pin.getLatLng());
      clearTimeout(resting);
      resting = setTimeout(() => moved(pin.getLatLng()), REST);
    });
  });
  return pin;
}
