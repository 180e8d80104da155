// A picture of a card: its maps with their pins, its words and the finding, as a PNG.

import { css } from "../js/colours.js";
import { $ } from "./page.js";

export const picture = (() => {
  const WIDE = 1600,
    EDGE = 32;

  function wrapped(pen, text, width) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (pen.measureText(longer).width <= width) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  async function save(name, maps) {
    const sheet = document.createElement("canvas"),
      pen = sheet.getContext("2d"),
      shown = maps.filter((map) => map.visible);
    const wide = (WIDE - EDGE * (shown.length + 1)) / shown.length,
      tall = Math.max(...shown.map((map) => (wide * map.height) / map.width));
    const texts = [
      [document.querySelector("h2:not([hidden] h2)")?.textContent ?? "", "600 40px"],
      [$("sentence").textContent, "26px"],
      [$("finding").textContent, "600 26px"],
    ];
    sheet.width = WIDE;
    const lines = texts.flatMap(([text, font]) => {
      pen.font = `${font} system-ui, sans-serif`;
      return wrapped(pen, text, WIDE - 2 * EDGE).map((line) => [line, font]);
    });
    sheet.height = tall + 2 * EDGE + 46 * lines.length + 40;
    pen.fillStyle = css("panel");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.fillStyle = css("ink");
    lines.forEach(([line, font], i) => {
      pen.font = `${font} system-ui, sans-serif`;
      pen.fillText(line, EDGE, EDGE + 34 + 46 * i);
    });
    shown.forEach((map, i) => {
      map.paint(pen, EDGE + i * (wide + EDGE), EDGE + 46 * lines.length, wide);
    });
    pen.fillStyle = css("soft");
    pen.font = "20px system-ui, sans-serif";
    pen.fillText(`geoind. ${$("attribution").textContent}`, EDGE, sheet.height - 16);
    const blob = await new Promise((done) => {
      sheet.toBlob(done, "image/png");
    });
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(blob);
    anchor.download = `geoind-${name}.png`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
  }
  return { save };
})();
