// The map as a picture: what the browser has drawn, layer by layer, with a caption.

import { map } from "./map.js";

const CAPTION = 54, SCALE = 2;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function imageOf(svg) {
  const copy = svg.cloneNode(true), originals = svg.querySelectorAll("path");
  // A picture has no style sheet: what the page's one says becomes attributes.
  copy.querySelectorAll("path").forEach((path, at) => path.setAttribute("stroke", getComputedStyle(originals[at]).stroke));
  // Where the map has moved its layer to is where we put the picture.
  copy.removeAttribute("style");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const image = new Image();
  return new Promise((done, failed) => {
    image.onload = () => done(image);
    image.onerror = failed;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  });
}

function write(pen, text, x, y, { size = 13, weight = 500, align = "left", ground = true } = {}) {
  pen.font = `${weight} ${size}px system-ui, sans-serif`;
  pen.textAlign = align;
  pen.textBaseline = "middle";
  const wide = pen.measureText(text).width, left = align === "center" ? x - wide / 2 : align === "right" ? x - wide : x;
  if (ground) {
    pen.fillStyle = css("panel");
    pen.fillRect(left - 4, y - size * 0.75, wide + 8, size * 1.5);
  }
  pen.fillStyle = css("ink");
  pen.fillText(text, x, y);
}

export async function takePicture(sentence, attribution) {
  const frame = map.getContainer().getBoundingClientRect(), sheet = document.createElement("canvas"), pen = sheet.getContext("2d");
  sheet.width = frame.width * SCALE;
  sheet.height = (frame.height + CAPTION) * SCALE;
  pen.scale(SCALE, SCALE);
  pen.fillStyle = css("outside");
  pen.fillRect(0, 0, frame.width, frame.height);
  for (const name of ["overlayPane", "belief", "drawn"]) {
    for (const drawn of map.getPane(name).querySelectorAll("canvas, svg")) {
      const box = drawn.getBoundingClientRect();
      pen.drawImage(drawn.tagName === "CANVAS" ? drawn : await imageOf(drawn), box.left - frame.left, box.top - frame.top, box.width, box.height);
    }
  }
  const centre = (element) => { const box = element.getBoundingClientRect(); return [box.left + box.width / 2 - frame.left, box.top + box.height / 2 - frame.top]; };
  for (const mark of map.getContainer().querySelectorAll(".pin, .diamond")) {
    const [x, y] = centre(mark), before = getComputedStyle(mark, "::before");
    pen.beginPath();
    pen.arc(x, y, mark.classList.contains("pin") ? 10 : 7, 0, 2 * Math.PI);
    Object.assign(pen, { fillStyle: before.backgroundColor, strokeStyle: css("panel"), lineWidth: 3 });
    pen.fill();
    pen.stroke();
  }
  for (const words of map.getContainer().querySelectorAll(".ring-label span, .leaflet-tooltip")) write(pen, words.textContent, ...centre(words), { size: 12, align: "center" });
  pen.fillStyle = css("panel");
  pen.fillRect(0, frame.height, frame.width, CAPTION);
  write(pen, sentence, 12, frame.height + 18, { weight: 600, ground: false });
  write(pen, attribution, 12, frame.height + 38, { size: 11, ground: false });
  return new Promise((done) => { sheet.toBlob(done, "image/png"); });
}

export function download(blob, name) {
  const link = document.createElement("a"), address = URL.createObjectURL(blob);
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
