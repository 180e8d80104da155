// The code for this view: the same question to the library in Python, and to this server with curl.

import { asked } from "./ask.js";

const $ = (id) => document.getElementById(id);
const PATHS = {
  explore: "/api/explore",
  near: "/api/near",
  again: "/api/again",
  trace: "/api/trace",
  compare: "/api/mechanisms",
};
const HOME = document.body.dataset.home.split(",").map(Number);
const degrees = (value) => Number(value.toFixed(6));

// Your places are in the code only if they may be in the link; else the town's own centre stands for them.
function bodyOf(tab, { place, privacy, shared }) {
  const body = { ...place, ...privacy, ...asked(PATHS[tab]) };
  delete body.seed;
  if (!shared) {
    Object.assign(body, { lat: HOME[0], lon: HOME[1] });
    if (body.there) body.there = { lat: HOME[0], lon: HOME[1] + 0.002 };
    if (body.path)
      body.path = [
        { lat: HOME[0], lon: HOME[1] },
        { lat: HOME[0], lon: HOME[1] + 0.004 },
      ];
  }
  if (tab === "trace") {
    delete body.lat;
    delete body.lon;
  }
  if (tab === "compare") {
    delete body.factor;
    delete body.radius;
  }
  if (tab === "again") body.person ??= "anna0001";
  return body;
}

const PYTHON = {
  explore: ({ lat, lon, factor, radius }) => `import math
import geoind

report = geoind.obfuscate(lat=${degrees(lat)}, lon=${degrees(lon)}, level=math.log(${factor}), radius=${radius})
print(report.lat, report.lon)`,
  near: ({ lat, lon, factor, radius, interest = 150, confidence = 0.95 }) => `import math
import geoind

epsilon = geoind.epsilon_for(level=math.log(${factor}), radius=${radius})
query = geoind.private_query(
    lat=${degrees(lat)}, lon=${degrees(lon)}, radius=${interest}, confidence=${confidence}, epsilon=epsilon
)
print(query.lat, query.lon, query.radius)
print(query.guarantee)`,
  again: ({ lat, lon, factor, radius, budget = 40, answer }) => `import math
${answer === "same" ? "import secrets\n" : ""}import geoind

epsilon = geoind.epsilon_for(level=math.log(${factor}), radius=${radius})
${answer === "same" ? "memory = geoind.SamePlace(secrets.token_bytes(32), cell=25)\n" : ""}with geoind.Ledger("sqlite:///budgets.db", budget=${budget} * epsilon) as ledger:
    report = ${answer === "same" ? "memory" : "geoind"}.obfuscate(
        lat=${degrees(lat)}, lon=${degrees(lon)}, epsilon=epsilon, person_id="anna", ledger=ledger
    )
    print(report.lat, report.lon, ledger.remaining("anna"))`,
  trace: ({ path = [], factor, radius }) => `import math
import geoind
from geoind.traces import Independent

session = geoind.TraceSession(Independent(geoind.epsilon_for(level=math.log(${factor}), radius=${radius})))
walk = [${path.map((corner) => `(${degrees(corner.lat)}, ${degrees(corner.lon)})`).join(", ")}]
for minute, (lat, lon) in enumerate(walk):
    print(session.report(lat=lat, lon=lon, time=60 * minute))
print(session.spent)  # fresh noise each time: their epsilons add up`,
  compare: () => `from geoind.evaluation import stored_comparison

for row in stored_comparison()["rows"]:
    if row["equalised"] == "uniform" and row["prior"] == "${document.querySelector("input[name=prior]:checked")?.value ?? "synthetic city"}":
        print(row["mechanism"], round(row["expected_loss"]), "m,", round(row["adversary_error"]), "m")`,
};

export function showCode(tab, view) {
  const known = tab in PYTHON;
  $("code").hidden = !known;
  if (!known) return;
  const body = bodyOf(tab, view);
  $("code-python").textContent = PYTHON[tab](body);
  $("code-curl").textContent = `curl -s ${location.origin}${PATHS[tab]} \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body)}'`;
}

export function prepareCode(again) {
  document.addEventListener("asked", again);
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText($(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
  }
}
