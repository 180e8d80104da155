/**
 * geoind on the device: geo-indistinguishable reports of locations, drawn exactly, in a page, an extension or in Node.
 *
 * One report, by the spherical Laplace law on the lattice of five decimals of a degree:
 *
 *     obfuscate({ lat: 48.8584, lon: 2.2945, level: Math.log(4), radius: 200 })   // { lat, lon }
 *     obfuscate({ lat, lon, epsilon: 0.0069, key, label: "trip-1" })              // the same record, the same report
 *     reach(epsilonFor({ level: Math.log(4), radius: 200 }), 0.95)                // metres: 692
 *
 * One report of a mechanism that Python saved as a .json file:
 *
 *     obfuscate({ lat, lon, mechanism: new Interpolated(text) })
 *
 * A person who moves; staying is free, and every answer is stored with its charge:
 *
 *     const budget = new Budget(localStorage, { epsilon: 0.1, total: 0.5 });
 *     const session = new TraceSession(SparseVector.forAccuracy(500), { key, person: "maps.example", budget });
 *     session.report({ lat, lon, time: Date.now() / 1000 });                      // { lat, lon }, or BudgetExceededError
 *     TraceSession.resume(session.state(), session.method, { key });              // a state of Python's, too
 *
 * One report per cell of a secret grid, charged once:
 *
 *     new SamePlace(key, { cell: 100 }).obfuscate({ lat, lon, person: "ana", level: Math.log(4), radius: 200, budget });
 *
 * Bad input is a TypeError or a RangeError before anything is drawn or charged. A key is 32 secret bytes (Uint8Array), or
 * 64 hexadecimal digits. docs/device.md says what is exact and why.
 */

export { Budget, BudgetExceededError } from "./budget.js";
export { Interpolated } from "./interpolated.js";
export { epsilonFor, obfuscate, reach } from "./obfuscate.js";
export { SamePlace } from "./same_place.js";
export { SparseVector, TraceSession } from "./session.js";
export { SphericalLaplace } from "./spherical.js";
export { factor, many, metres, percent } from "./words.js";
export { PrivateZone } from "./zone.js";
