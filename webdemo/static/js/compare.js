export const compare = { init() {}, enter() {}, update() {} };
