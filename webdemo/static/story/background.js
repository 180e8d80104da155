// Long computations, away from the page. A page from a disk may not load a file for a worker, so it runs the core's text.

import { ownDay, runs } from "./core.js";

export const background = (() => {
  // The worker's own core has the same names.
  const TASKS = { typical: (core) => core.runs.typical, study: (core) => core.ownDay.study };
  const answer = `let core;
onmessage = ({ data: { town, task, using } }) => {
  if (town) { core = makeCore(town); return; }
  try { postMessage({ done: TASKS[task](core)(...using) }); } catch (error) { postMessage({ failed: error.message }); }
};`;
  const text = () => {
    const tasks = Object.entries(TASKS).map(([name, choose]) => `${name}: ${choose}`);
    return `"use strict";\nconst makeCore = ${makeCore};\nconst TASKS = { ${tasks.join(", ")} };\n${answer}`;
  };
  let worker = null,
    waiting = null;

  // In a browser without such workers the page computes.
  function inPage() {
    const { resolve, task, using } = waiting;
    worker = waiting = null;
    resolve(TASKS[task]({ runs, ownDay })(...using));
  }

  function start() {
    const address = URL.createObjectURL(new Blob([text()], { type: "text/javascript" })),
      made = new Worker(address);
    made.postMessage({ town: { centre: TOWN.centre, margin: TOWN.margin, homes: TOWN.homes } });
    made.onmessage = ({ data }) => {
      const { resolve, reject } = waiting;
      waiting = null;
      if ("failed" in data) reject(new Error(data.failed));
      else resolve(data.done);
    };
    made.onerror = inPage;
    return made;
  }

  // Only the newest question counts: another one under way is given up, and its promise never settles.
  function ask(task, ...using) {
    if (waiting) {
      worker.terminate();
      worker = null;
    }
    return new Promise((resolve, reject) => {
      waiting = { resolve, reject, task, using };
      try {
        worker ??= start();
        worker.postMessage({ task, using });
      } catch {
        inPage();
      }
    });
  }
  return { ask };
})();
