// A view as a picture with a caption: the map as the browser has drawn it, layer by layer, or small maps.

import { css } from "./colours.js";
import { map } from "./map.js";

const SCALE = 2,
  EDGE = 12,
  LINE = 18;

// A picture has no style sheet: what the page's one says becomes attributes.
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"];

function imageOf(svg) {
  const copy = svg.cloneNode(true),
    originals = svg.querySelectorAll("path, rect, line");
  copy.querySelectorAll("path, rect, line").forEach((shape, at) => {
    const look = getComputedStyle(originals[at]);
    for (const name of LOOKS) shape.setAttribute(name, look.getPropertyValue(name));
  });
  // Where the page has moved it to is where we put the picture.
  copy.removeAttribute("style");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const { width, height } = svg.getBoundingClientRect(),
    image = new Image();
  for (const [name, value] of Object.entries({ width, height })) copy.setAttribute(name, value);
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
  const wide = pen.measureText(text).width,
    left = align === "center" ? x - wide / 2 : align === "right" ? x - wide : x;
  if (ground) {
    pen.fillStyle = css("panel");
    pen.fillRect(left - 4, y - size * 0.75, wide + 8, size * 1.5);
  }
  pen.fillStyle = css("ink");
  pen.fillText(text, x, y);
}

// A sentence in lines that are no wider than this.
function linesOf(pen, sentence, width) {
  const lines = [""];
  pen.font = "600 13px system-ui, sans-serif";
  for (const word of sentence.split(/ +/).filter(Boolean)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (pen.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// A sheet of that size with a caption, and how to finish it.
/** @returns {[CanvasRenderingContext2D, () => Promise<any>]} */
function sheetOf(width, height, ground, sentence, attribution) {
  const sheet = document.createElement("canvas"),
    pen = sheet.getContext("2d"),
    lines = linesOf(pen, sentence, width - 2 * EDGE),
    caption = (lines.length + 2) * LINE;
  sheet.width = width * SCALE;
  sheet.height = (height + caption) * SCALE;
  pen.scale(SCALE, SCALE);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, height);
  return [
    pen,
    () => {
      pen.fillStyle = css("panel");
      pen.fillRect(0, height, width, caption);
      lines.forEach((line, at) => {
        write(pen, line, EDGE, height + (at + 1) * LINE, { weight: 600, ground: false });
      });
      write(pen, attribution, EDGE, height + (lines.length + 1) * LINE, { size: 11, ground: false });
      return new Promise((done) => {
        sheet.toBlob(done, "image/png");
      });
    },
  ];
}

// Small maps with their names and numbers below: the figures of `holder`.
export async function takeFigures(holder, sentence, attribution) {
  const frame = holder.getBoundingClientRect(),
    figures = [...holder.querySelectorAll("figure")];
  const boxOf = (figure) => figure.querySelector("svg").getBoundingClientRect();
  const height = Math.max(...figures.map((figure) => boxOf(figure).bottom)) - frame.top + EDGE + 4 * LINE;
  const [pen, finished] = sheetOf(frame.width + 2 * EDGE, height, css("panel"), sentence, attribution);
  for (const figure of figures) {
    const box = boxOf(figure),
      left = box.left - frame.left + EDGE,
      top = box.top - frame.top + EDGE;
    pen.drawImage(await imageOf(figure.querySelector("svg")), left, top, box.width, box.height);
    [figure.querySelector("b").textContent, ...figure.querySelector(".numbers").textContent.split(" · ")].forEach(
      (words, at) => {
        write(pen, words, left, top + box.height + (at + 0.8) * LINE, {
          size: 12,
          weight: at ? 400 : 600,
          ground: false,
        });
      },
    );
  }
  return finished();
}

export async function takePicture(sentence, attribution) {
  const frame = map.getContainer().getBoundingClientRect();
  const [pen, finished] = sheetOf(frame.width, frame.height, css("outside"), sentence, attribution);
  for (const name of ["overlayPane", "belief", "drawn"]) {
    for (const drawn of map.getPane(name).querySelectorAll("canvas, svg")) {
      const box = drawn.getBoundingClientRect();
      pen.drawImage(
        drawn.tagName === "CANVAS" ? drawn : await imageOf(drawn),
        box.left - frame.left,
        box.top - frame.top,
        box.width,
        box.height,
      );
    }
  }
  const centre = (element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2 - frame.left, box.top + box.height / 2 - frame.top];
  };
  // Names first: no name hides a pin.
  for (const words of map.getContainer().querySelectorAll(".ring-label span, .leaflet-tooltip"))
    write(pen, words.textContent, ...centre(words), { size: 12, align: "center" });
  for (const mark of map.getContainer().querySelectorAll(".pin, .diamond")) {
    const [x, y] = centre(mark),
      before = getComputedStyle(mark, "::before");
    pen.beginPath();
    pen.arc(x, y, mark.classList.contains("pin") ? 10 : 7, 0, 2 * Math.PI);
    Object.assign(pen, { fillStyle: before.backgroundColor, strokeStyle: css("panel"), lineWidth: 3 });
    pen.fill();
    pen.stroke();
  }
  return finished();
}

export function download(blob, name) {
  const link = document.createElement("a"),
    address = URL.createObjectURL(blob);
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
