// Isolated world, every frame: passes a page's questions to the extension and the answers back.
//
// The page holds the other end of the port, so every message is hostile. A message names no site: the browser states
// the origin of the frame to the extension. What a page can forge here, it can also get by asking.

(() => {
  const LONGEST_WAIT = 120_000;
  const RETRY = 500;
  const UNAVAILABLE = { error: 2, message: "The position is not available." };
  const DENIED = { error: 1, message: "User denied Geolocation" };
  const TIMEOUT = { error: 3, message: "Timeout expired" };

  /** @type {Map<string, Promise<any>>} */
  const open = new Map();

  /** Whether the embedding pages have delegated geolocation to this frame. */
  function delegated() {
    const policy = /** @type {any} */ (document).featurePolicy ?? /** @type {any} */ (document).permissionsPolicy;
    if (policy) return policy.allowsFeature("geolocation");
    // Firefox does not say: there, only frames of the page's own origin are answered.
    try {
      return Boolean(window.top?.document);
    } catch {
      return false;
    }
  }

  /**
   * One question to the extension; calls that are under way share it.
   * @param {"position" | "permission"} kind
   * @returns {Promise<any>}
   */
  function ask(kind) {
    const under = open.get(kind);
    if (under) return under;
    const asked = Promise.resolve(chrome.runtime.sendMessage({ kind }))
      .then((answer) => answer ?? UNAVAILABLE)
      .catch(() => UNAVAILABLE)
      .finally(() => open.delete(kind));
    open.set(kind, asked);
    return asked;
  }

  /** @param {number} milliseconds */
  const pause = (milliseconds) =>
    new Promise((done) => {
      setTimeout(done, milliseconds);
    });

  /**
   * The position, or an error. The page's timeout does not run while the person is asked.
   * @param {number} timeout
   */
  async function position(timeout) {
    const patience = Math.min(timeout, LONGEST_WAIT);
    const until = Date.now() + LONGEST_WAIT;
    while (Date.now() < until) {
      const answer = await Promise.race([ask("position"), pause(patience).then(() => TIMEOUT)]);
      if (!answer.pending) return answer;
      await pause(RETRY);
    }
    return DENIED;
  }

  /** @param {any} question */
  async function answer(question) {
    if (!isSecureContext) return { error: 1, message: "Only secure origins are allowed." };
    if (!delegated())
      return { error: 1, message: "Geolocation has been disabled in this document by permissions policy." };
    return question.kind === "position" ? position(question.timeout) : ask("permission");
  }

  /** @param {MessagePort} port */
  function serve(port) {
    port.onmessage = async ({ data }) => {
      const { id, kind, timeout } = Object(data);
      const valid = Number.isSafeInteger(id) && timeout >= 0 && (kind === "position" || kind === "permission");
      if (!valid) return;
      port.postMessage({ id, ...(await answer({ kind, timeout }).catch(() => UNAVAILABLE)) });
    };
  }

  // A synchronous event hands the port over, before any script of the page runs. A port, unlike a listener, survives
  // document.open(). Either script may be the first.
  addEventListener("geoind-port", (event) => serve(/** @type {MessageEvent} */ (event).ports[0]), { once: true });
  dispatchEvent(new Event("geoind-gate"));
})();
