// Where an observer looks: buildings coloured by probability, with outlines around 50 and 90 % of the belief.

import { map } from "./map.js";
import { beliefColour, showScale } from "./scale.js";
import { buildings } from "./town.js";

const $ = (id) => document.getElementById(id);

let shapes = null,
  making = null,
  outlines = null;
const drawn = () => Boolean(shapes && map.hasLayer(shapes.group));

async function make() {
  const known = await buildings();
  const renderer = L.canvas({ pane: "belief", padding: 0.15 });
  const all = known.map(({ rings }) =>
    L.polygon(rings, { renderer, pane: "belief", weight: 0.5, interactive: false, stroke: false, fill: false }),
  );
  shapes = { all, group: L.layerGroup(all) };
}

export async function showBelief(belief) {
  making ??= make().catch((error) => {
    making = null;
    throw error;
  });
  await making;
  const chances = new Map(belief.buildings);
  shapes.all.forEach((shape, number) => {
    const chance = chances.get(number);
    if (chance) shape.setStyle({ fill: true, fillColor: beliefColour(chance), fillOpacity: 0.92 });
    else if (shape.options.fill) shape.setStyle({ fill: false });
  });
  if (!drawn()) shapes.group.addTo(map);
  outlines?.remove();
  outlines = L.layerGroup(
    [
      ["most", 1.5, "5 4"],
      ["half", 2.5, null],
    ].map(([name, weight, dashArray]) =>
      L.polygon(belief[name].outline, {
        pane: "belief",
        renderer: outlineRenderer(),
        fill: false,
        weight,
        dashArray,
        interactive: false,
        className: `contour contour-${name}`,
      }),
    ),
  ).addTo(map);
  legend(belief);
}

let outlining = null;
const outlineRenderer = () => (outlining ??= L.svg({ pane: "belief", padding: 0.15 }));

export function hideBelief() {
  shapes?.group.remove();
  outlines?.remove();
  $("legend").hidden = true;
}

function legend(belief) {
  const box = $("legend"),
    title = document.createElement("p"),
    scale = document.createElement("div"),
    lines = document.createElement("p"),
    sentence = document.createElement("p");
  title.textContent = "Where an observer looks: chance of a building";
  scale.className = "belief-scale";
  showScale(scale);
  lines.className = "lines";
  for (const [name, text] of [
    ["half", "50 %"],
    ["most", "90 %"],
  ]) {
    lines.append(Object.assign(document.createElement("i"), { className: `edge ${name}` }), ` ${text} `);
  }
  sentence.className = "sentence";
  sentence.append(
    ...belief.sentence
      .split(/(?<=\.) /)
      .map((part) => Object.assign(document.createElement("span"), { textContent: `${part} ` })),
  );
  box.replaceChildren(title, scale, lines, sentence);
  box.hidden = false;
}
