// What the observer knows of the town: its buildings. Asked for once.

import { get } from "./ask.js";

let asked = null;

export function buildings() {
  asked ??= get("/api/town")
    .then((result) => result.buildings)
    .catch((error) => {
      asked = null;
      throw error;
    });
  return asked;
}
