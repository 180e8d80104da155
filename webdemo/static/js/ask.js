// Questions to the server: POST with a JSON body, so that no address ever holds a location.

const problem = document.getElementById("problem"),
  panel = document.getElementById("panel"),
  busySign = document.getElementById("busy");
const PATIENCE = 300,
  AGAIN = 1000;
const LOST =
  "The server of this demo does not answer. The page shows its last answer and continues when the server is back.";

let underWay = 0,
  showBusy = null,
  lost = false;
const whenFound = new Set();

// The server refused the question and gave the reason.
export class Refused extends Error {}
// No answer arrived: the same question is asked again when the server is back.
export class Lost extends Error {}

export function say(sentence) {
  if (lost) sentence = LOST;
  problem.textContent = sentence ?? "";
  problem.hidden = !sentence;
}

// While an answer is under way the panel is busy; the sign is shown if it takes long.
function wait(change) {
  underWay += change;
  panel.setAttribute("aria-busy", underWay > 0);
  if (!underWay) {
    clearTimeout(showBusy);
    showBusy = null;
    busySign.hidden = true;
  } else if (!showBusy)
    showBusy = setTimeout(() => {
      busySign.hidden = false;
    }, PATIENCE);
}

async function answerOf(path, options) {
  wait(1);
  try {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      lose();
      throw new Lost(LOST);
    }
    const result = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(result.detail ?? `The server answered ${answer.status}.`);
    return result;
  } finally {
    wait(-1);
  }
}

function lose() {
  if (lost) return;
  lost = true;
  document.body.dataset.lost = "yes";
  say(null);
  setTimeout(lookForServer, AGAIN);
}

async function lookForServer() {
  try {
    await fetch("/static/icon.svg", { method: "HEAD", cache: "no-store" });
  } catch {
    setTimeout(lookForServer, AGAIN);
    return;
  }
  lost = false;
  delete document.body.dataset.lost;
  say(null);
  const waiting = [...whenFound];
  whenFound.clear();
  for (const again of waiting) again();
}

export const get = (path) => answerOf(path);
// The last question under a path, for the code of a view; the event "asked" is sent when it changes.
const questions = new Map();
export const asked = (path) => questions.get(path) ?? {};
export function post(path, body) {
  questions.set(path, body);
  document.dispatchEvent(new Event("asked"));
  return answerOf(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

// Runs again what failed because no answer arrived; returns whether that was the reason.
export function retry(error, again) {
  if (error instanceof Lost) whenFound.add(again);
  return error instanceof Lost;
}

// One question at a time: while it is under way only the newest one waits, so a slider never queues up.
export function asker(path, show, refused = (_body) => {}) {
  let busy = false,
    next = null;
  const again = () => {
    if (next) {
      const waiting = next;
      next = null;
      ask(waiting);
    }
  };
  async function ask(body) {
    if (busy) {
      next = body;
      return;
    }
    busy = true;
    try {
      const result = await post(path, body);
      say(null);
      show(result, body);
    } catch (error) {
      if (retry(error, again)) next ??= body;
      else {
        refused(body);
        say(error.message);
      }
    } finally {
      busy = false;
      if (!lost) again();
    }
  }
  return ask;
}
