// The shell: parts, cards, controls, dark and light, the size for a projector, and the address.

import { showScale } from "../js/scale.js";
import { put } from "../js/words.js";
import { cards } from "./cards.js";
import { dayView } from "./day_view.js";
import { guess } from "./guess.js";
import { link } from "./link.js";
import { $ } from "./page.js";
import { picture } from "./picture.js";
import { play } from "./play.js";
import { scene } from "./scene.js";
import { PARTS } from "./texts.js";
import { TownMap } from "./town_map.js";

(() => {
  const OTHERS = { free: () => cards.open(cards.FREE), day: dayView.open, guess: guess.open };
  let part = "card",
    number = 0;
  const card = () => (part === "card" ? cards.LIST[number] : cards.FREE);
  const view = () => (part === "card" ? { card: number + 1 } : { part });

  function read() {
    const { part: asked, card: to } = link.read();
    part = Object.hasOwn(OTHERS, asked) ? asked : "card";
    number = Number.isInteger(to) && to >= 1 && to <= cards.LIST.length ? to - 1 : 0;
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
    TownMap.wholeTown();
    scene.labels();
    if (part === "card") {
      const { title, sentence, drag } = cards.LIST[number];
      put("count", `${number + 1} of ${cards.LIST.length}`);
      put("title", title);
      put("sentence", sentence);
      put("drag", drag);
      $("definition").hidden = number !== 2;
      $("back").disabled = number === 0;
      put("next", number + 1 < cards.LIST.length ? "Next" : "Free play");
      cards.open(cards.LIST[number]);
    } else OTHERS[part]();
    document.title = `${part === "card" ? cards.LIST[number].title : PARTS[part]} · geoind`;
    $("lead").scrollTop = $("panel").scrollTop = 0;
    scrollTo(0, 0);
  }

  // Back and forward go from card to card.
  function go(to) {
    location.hash = new URLSearchParams(to).toString();
  }
  const goCard = (to) => go(to >= cards.LIST.length ? { part: "free" } : { card: String(Math.max(0, to) + 1) });
  const heading = () => document.querySelector(`#part-${part} h2`);

  addEventListener("hashchange", () => {
    read();
    show();
    // A tab keeps the focus, so that the arrow keys lead on; otherwise the new card's heading is read.
    if (document.activeElement?.getAttribute("role") !== "tab") heading().focus({ preventScroll: true });
  });
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () =>
      tab.dataset.part === "card" ? goCard(number) : go({ part: tab.dataset.part }),
    );
    tab.addEventListener("keydown", (event) => {
      const tabs = [...document.querySelectorAll("[role=tab]")],
        at = tabs.indexOf(tab);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.focus();
      next.click();
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
  const clicks = {
    redraw: () => {
      scene.reseed();
      changed();
    },
    play: play.start,
    "ask-once": play.once,
    "start-over": play.again,
    reveal: guess.reveal,
    more: guess.more,
    "add-guess": guess.addHere,
    "hide-again": guess.again,
    "zoom-in": () => TownMap.zoom(1.6),
    "zoom-out": () => TownMap.zoom(1 / 1.6),
    link: copyLink,
    picture: () => picture.save(Object.values(view()).join("-"), [scene.yours, scene.theirs]),
    size: () => {
      document.documentElement.toggleAttribute("data-large");
      $("size").setAttribute("aria-pressed", document.documentElement.hasAttribute("data-large"));
    },
    full: () => (document.fullscreenElement ? document.exitFullscreen() : $("theirs").requestFullscreen()),
  };
  for (const [id, click] of Object.entries(clicks)) $(id).addEventListener("click", () => click());
  // What these bring about is said in a sentence: it comes into sight.
  for (const id of ["redraw", "play", "ask-once", "reveal", "add-guess"])
    $(id).addEventListener("click", () => $("lead").scrollIntoView({ block: "nearest" }));
  $("show-belief").addEventListener("change", guess.draw);

  // In the address bar, and in the clipboard where the browser allows it.
  async function copyLink() {
    history.replaceState(null, "", `#${link.of(view())}`);
    let copied = true;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      copied = false;
    }
    put("link-note", copied ? "Copied: this link repeats the run." : "The address of this page repeats the run.");
  }

  $("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("geoind-theme", theme);
    } catch {
      /* storage is off: for this visit only */
    }
    showScale($("scale"));
    scene.yours.draw();
    scene.theirs.draw();
  });

  put("attribution", `${TOWN.name}: ${TOWN.attribution}`);
  showScale($("scale"));
  scene.reseed();
  read();
  show();
  document.documentElement.dataset.ready = "yes";
})();
