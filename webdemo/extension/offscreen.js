// The offscreen document: the only part of the extension that sees the true position.

import { draw } from "./draw.js";

chrome.runtime.onMessage.addListener((message, sender, reply) => {
  // Messages of content scripts come here, too. The browser states who sent them: only documents have an origin.
  const worker = sender.url === chrome.runtime.getURL("background.js") && sender.origin === undefined && !sender.tab;
  const own = sender.id === chrome.runtime.id && worker;
  if (!own || message?.to !== "offscreen") return false;
  draw(message.question).then(reply, () => reply({ error: 2 }));
  return true;
});
