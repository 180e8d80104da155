// The shell: parts, cards, controls, dark and light, and the address, which never holds a place.

import { showScale } from "../js/scale.js";
import { put } from "../js/words.js";
import { cards } from "./cards.js";
import { dayView } from "./day_view.js";
import { guess } from "./guess.js";
import { noise } from "./noise.js";
import { $ } from "./page.js";
import { play } from "./play.js";
import { scene } from "./scene.js";

(() => {
  const OTHERS = { free: () => cards.open(cards.FREE), day: dayView.open, guess: guess.open };
  let part = "card", number = 0;
  const card = () => (part === "card" ? cards.LIST[number] : cards.FREE);

  function read() {
    const said = new URLSearchParams(location.hash.slice(1)), asked = Number(said.get("card") ?? 1);
    part = Object.hasOwn(OTHERS, said.get("part")) ? said.get("part") : "card";
    number = Number.isInteger(asked) && asked >= 1 && asked <= cards.LIST.length ? asked - 1 : 0;
  }

  function show() {
    play.pause();
    $("problem").hidden = true;
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const chosen = tab.dataset.part === part;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
      $(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    $("steps").hidden = part !== "card";
    scene.labels();
    if (part === "card") {
      const { title, sentence, drag } = cards.LIST[number];
      put("count", `${number + 1} of ${cards.LIST.length}`);
      put("title", title); put("sentence", sentence); put("drag", drag);
      $("back").disabled = number === 0;
      put("next", number + 1 < cards.LIST.length ? "Next" : "Free play");
      cards.open(cards.LIST[number]);
    } else OTHERS[part]();
    $("panel").scrollTop = 0;
  }

  // Back and forward go from card to card.
  function go(to) {
    location.hash = to;
  }
  const goCard = (to) => (to >= cards.LIST.length ? go("part=free") : go(`card=${Math.max(0, to) + 1}`));

  addEventListener("hashchange", () => { read(); show(); });
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => (tab.dataset.part === "card" ? goCard(number) : go(`part=${tab.dataset.part}`)));
    tab.addEventListener("keydown", (event) => {
      const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(tab);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.click();
      next.focus();
    });
  }
  $("back").addEventListener("click", () => goCard(number - 1));
  $("next").addEventListener("click", () => goCard(number + 1));

  function changed() {
    scene.labels();
    if (part === "guess") guess.hide();
    else if (part === "day") dayView.open();
    else cards.open(card());
  }
  for (const id of ["dial", "interest", "budget"]) $(id).addEventListener("input", changed);
  for (const radio of document.querySelectorAll("input[name=remedy]")) radio.addEventListener("change", changed);
  $("redraw").addEventListener("click", () => { scene.state.dice = noise.draw(); changed(); });
  $("play").addEventListener("click", play.start);
  $("ask-once").addEventListener("click", play.once);
  $("start-over").addEventListener("click", () => play.restart());
  $("reveal").addEventListener("click", guess.reveal);
  $("more").addEventListener("click", guess.more);
  $("hide-again").addEventListener("click", guess.hide);
  // What these bring about is said in a sentence: it comes into sight.
  for (const id of ["redraw", "play", "ask-once", "reveal"]) $(id).addEventListener("click", () => $("finding").scrollIntoView({ block: "nearest" }));
  $("show-belief").addEventListener("change", guess.draw);

  $("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("geoind-theme", theme); } catch { /* storage is off: for this visit only */ }
    showScale($("scale"));
    scene.yours.draw(); scene.theirs.draw();
    if (!$("gauge-box").hidden) changed();
  });

  put("attribution", `${TOWN.name}: ${TOWN.attribution}`);
  showScale($("scale"));
  read();
  show();
  document.documentElement.dataset.ready = "yes";
})();
