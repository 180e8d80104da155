// Main world, every frame, before the page's own scripts: answers the page with reports.
//
// Nothing here protects the true position: it never comes into this process, because the browser's own geolocation is
// blocked for web pages. A page that tampers with these functions, or reaches the native ones, gets an error.

(() => {
  const PERIOD = 5000;
  const native = {
    getCurrentPosition: Geolocation.prototype.getCurrentPosition,
    watchPosition: Geolocation.prototype.watchPosition,
    clearWatch: Geolocation.prototype.clearWatch,
    query: globalThis.Permissions?.prototype.query,
  };
  const { port1: port, port2 } = new MessageChannel();
  const offer = () => dispatchEvent(new MessageEvent("geoind-port", { ports: [port2] }));
  offer();
  addEventListener("geoind-gate", offer, { once: true });

  /** @type {Map<number, (answer: any) => void>} */
  const waiting = new Map();
  let asked = 0;
  port.onmessage = ({ data }) => {
    const resolve = waiting.get(data.id);
    waiting.delete(data.id);
    resolve?.(data);
  };

  /**
   * @param {"position" | "permission"} kind
   * @param {number} [timeout]
   * @returns {Promise<any>}
   */
  const ask = (kind, timeout = Infinity) =>
    new Promise((resolve) => {
      asked += 1;
      waiting.set(asked, resolve);
      port.postMessage({ id: asked, kind, timeout });
    });

  /**
   * An object of a browser's class whose values are its own.
   * @param {any} type
   * @param {Record<string, any>} values
   */
  function made(type, values) {
    const object = Object.create(type?.prototype ?? Object.prototype);
    for (const [name, value] of Object.entries(values))
      Object.defineProperty(object, name, { value, enumerable: true });
    const json = () =>
      Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value?.toJSON?.() ?? value]));
    return Object.defineProperty(object, "toJSON", { value: json });
  }

  /** @param {any} answer */
  function positionOf({ latitude, longitude, accuracy, timestamp }) {
    const coords = made(globalThis.GeolocationCoordinates, {
      latitude,
      longitude,
      accuracy,
      altitude: null,
      altitudeAccuracy: null,
      heading: null,
      speed: null,
    });
    return made(globalThis.GeolocationPosition, { coords, timestamp });
  }

  /** @param {any} answer */
  const errorOf = ({ error, message }) => made(globalThis.GeolocationPositionError, { code: error, message });

  /**
   * The arguments of a call, checked as the browser does.
   * @param {string} name
   * @param {any} success
   * @param {any} failure
   * @param {any} options
   */
  function checked(name, success, failure, options) {
    const wrong = (/** @type {string} */ what) =>
      new TypeError(`Failed to execute '${name}' on 'Geolocation': ${what}`);
    if (typeof success !== "function") throw wrong("parameter 1 is not of type 'Function'.");
    if (failure != null && typeof failure !== "function") throw wrong("parameter 2 is not of type 'Function'.");
    if (options != null && !/object|function/.test(typeof options)) throw wrong("parameter 3 is not an object.");
    const timeout = options?.timeout === undefined ? Infinity : Math.max(0, Number(options.timeout) || 0);
    return { success, failure, timeout };
  }

  /** @type {Map<number, {stopped: boolean, native?: number}>} */
  const watches = new Map();
  let watched = 0;

  const replaced = {
    /** @this {Geolocation} @param {any} success @param {any[]} others */
    getCurrentPosition(success, ...others) {
      const { failure, timeout } = checked("getCurrentPosition", success, others[0], others[1]);
      ask("position", timeout).then((answer) => {
        if (answer.paused) native.getCurrentPosition.call(this, success, ...others);
        else callLater(success, failure, answer);
      });
    },
    /** @this {Geolocation} @param {any} success @param {any[]} others */
    watchPosition(success, ...others) {
      const { failure, timeout } = checked("watchPosition", success, others[0], others[1]);
      const watch = { stopped: false, native: undefined };
      watched += 1;
      watches.set(watched, watch);
      follow(watch, timeout, success, failure, () => native.watchPosition.call(this, success, ...others));
      return watched;
    },
    /** @this {Geolocation} @param {any} id */
    clearWatch(id) {
      const watch = watches.get(Number(id));
      if (!watch) return;
      watches.delete(Number(id));
      watch.stopped = true;
      if (watch.native !== undefined) native.clearWatch.call(this, watch.native);
    },
  };

  /**
   * Outside of promises, so that an error in a page's function is the page's.
   * @param {any} success
   * @param {any} failure
   * @param {any} answer
   */
  function callLater(success, failure, answer) {
    setTimeout(() => (answer.error ? failure?.(errorOf(answer)) : success(positionOf(answer))));
  }

  /**
   * Ask by the clock, never by the device's own events: their times depend on the true position.
   * @param {any} watch
   * @param {number} timeout
   * @param {any} success
   * @param {any} failure
   * @param {() => number} hand
   */
  async function follow(watch, timeout, success, failure, hand) {
    let last = "";
    while (!watch.stopped) {
      const answer = await ask("position", timeout);
      if (watch.stopped) return;
      if (answer.paused) {
        watch.native = hand();
        return;
      }
      const now = answer.error ? `${answer.error}` : `${answer.latitude} ${answer.longitude}`;
      if (now !== last) {
        last = now;
        callLater(success, failure, answer);
      }
      await new Promise((done) => {
        setTimeout(done, PERIOD);
      });
    }
  }

  /** @this {Permissions} @param {any} descriptor */
  async function query(descriptor) {
    const status = await native.query.call(this, descriptor);
    if (descriptor?.name !== "geolocation") return status;
    const answer = await ask("permission");
    if (answer.paused) return status;
    const state = answer.error ? "denied" : answer.state;
    return Object.defineProperty(status, "state", { value: state, enumerable: true });
  }

  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(Geolocation.prototype, name, { value, writable: true, enumerable: true, configurable: true });
  }
  if (globalThis.Permissions) {
    Object.defineProperty(Permissions.prototype, "query", {
      value: query,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
})();
