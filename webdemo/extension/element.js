// Main world, after page.js: the <geolocation> element of Chromium answers with reports, too.
//
// The native element is denied like every native call. Here a click, or `autolocate` where the site has a level, asks
// as navigator.geolocation does. Elements in shadow trees answer to clicks only.

(() => {
  const type = /** @type {any} */ (globalThis).HTMLGeolocationElement;
  if (!type) return;
  const { geolocation, permissions } = navigator;
  const { getCurrentPosition, watchPosition, clearWatch } = geolocation;
  const { query } = permissions;

  /** @typedef {{position: any, error: any, began: boolean, watch?: number}} Known */
  /** @type {WeakMap<object, Known>} */
  const known = new WeakMap();
  let permission = "prompt";

  /** @param {object} element @returns {Known} */
  function knownOf(element) {
    const found = known.get(element) ?? { position: null, error: null, began: false };
    known.set(element, found);
    return found;
  }

  /** @param {any} element */
  function locate(element) {
    const state = knownOf(element);
    state.began = true;
    const answer = (/** @type {any} */ position, /** @type {any} */ error) => {
      Object.assign(state, { position, error });
      element.dispatchEvent(new Event("location"));
    };
    /** @type {[PositionCallback, PositionErrorCallback]} */
    const calls = [(position) => answer(position, null), (error) => answer(null, error)];
    if (state.watch !== undefined) clearWatch.call(geolocation, state.watch);
    if (element.hasAttribute("watch")) state.watch = watchPosition.apply(geolocation, calls);
    else getCurrentPosition.apply(geolocation, calls);
  }

  /** @type {Record<string, (element: object) => any>} */
  const getters = {
    position: (element) => knownOf(element).position,
    error: (element) => knownOf(element).error,
    permissionStatus: () => permission,
    initialPermissionStatus: () => permission,
  };
  for (const [name, read] of Object.entries(getters)) {
    const described = Object.getOwnPropertyDescriptor(type.prototype, name);
    if (!described?.get) continue;
    const { get: native } = described;
    // The native value is null, unless the site is paused.
    Object.defineProperty(type.prototype, name, {
      ...described,
      get() {
        return read(this) ?? native.call(this);
      },
    });
  }

  addEventListener(
    "click",
    (event) => {
      const [element] = event.composedPath();
      if (!(element instanceof type) || !event.isTrusted) return;
      event.preventDefault();
      locate(element);
    },
    { capture: true },
  );

  const elements = document.getElementsByTagName("geolocation");
  new MutationObserver(async () => {
    const waiting = [...elements].filter((element) => element.hasAttribute("autolocate") && !knownOf(element).began);
    if (!elements.length) return;
    permission = (await query.call(permissions, { name: "geolocation" })).state;
    if (permission === "granted") waiting.filter((element) => !knownOf(element).began).forEach(locate);
  }).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["autolocate"] });
})();
