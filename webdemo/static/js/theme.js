// Before the first paint, so that a dark page never flashes light.
(() => {
  let wanted = null;
  try {
    wanted = localStorage.getItem("geoind-theme");
  } catch {
    /* storage is off: follow the system */
  }
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  // A script that does not arrive leaves a page that does nothing: say so.
  addEventListener(
    "error",
    (event) => {
      if (event.target instanceof HTMLScriptElement) document.documentElement.dataset.failed = "yes";
    },
    true,
  );
})();
