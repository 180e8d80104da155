// What computes, without elements of a page: the page runs it, and so does a worker.

export { homes, pointsOf } from "./homes.js";
export { noise } from "./noise.js";
export { ownDay } from "./own_day.js";
export { posterior } from "./posterior.js";
export { remedies } from "./remedies.js";
export { runs } from "./runs.js";
export { watcher } from "./watcher.js";
