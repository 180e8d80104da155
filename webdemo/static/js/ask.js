// Questions to the server: POST with a JSON body, so that no address ever holds a location.

const problem = document.getElementById("problem"), panel = document.getElementById("panel");
let underWay = 0;

export function say(sentence) {
  problem.textContent = sentence ?? "";
  problem.hidden = !sentence;
}

// While an answer is under way the panel says so: a screen reader waits, and so does a test.
function wait(change) {
  underWay += change;
  panel.setAttribute("aria-busy", underWay > 0);
}

async function answerOf(path, options) {
  wait(1);
  try {
    const answer = await fetch(path, options), told = await answer.json();
    if (!answer.ok) throw new Error(told.detail ?? `the server answered ${answer.status}`);
    return told;
  } finally {
    wait(-1);
  }
}

export const get = (path) => answerOf(path);
export const post = (path, body) =>
  answerOf(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// One question at a time: while it is under way only the newest one waits, so a slider never queues up.
export function asker(path, show) {
  let busy = false, next = null;
  return async function ask(body) {
    if (busy) { next = body; return; }
    busy = true;
    try {
      show(await post(path, body));
      say(null);
    } catch (error) {
      say(error.message);
    } finally {
      busy = false;
      if (next) { const waiting = next; next = null; ask(waiting); }
    }
  };
}
