// What other scripts of a page define, and elements as the scripts use them: their ids say what they are.

/** Leaflet. */
declare const L: any;
/** The town of the story, by webdemo/story.py. */
declare const TOWN: any;
/** What computes in the story, for a town: core.js, by webdemo/story.py. */
declare const makeCore: (town: any) => any;

interface Window {
  demo_map: any;
  demo_base: any;
}
interface Document {
  getElementById(id: string): any;
}
interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}
interface Element {
  setAttribute(name: string, value: any): void;
}
interface HTMLButtonElement {
  at: any;
  move: any;
}
