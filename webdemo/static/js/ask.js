// Questions to the server: POST with a JSON body, so that no address ever holds a location.

const problem = document.getElementById("problem");

export function say(sentence) {
  problem.textContent = sentence ?? "";
  problem.hidden = !sentence;
}

export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.detail ?? `the server answered ${answer.status}`);
  return told;
}

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
