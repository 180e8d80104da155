// Runs the known answers, in Node and in Chromium, and returns the names of those that differ.

export function differences(geoind, answers) {
  const key = Uint8Array.from({ length: 32 }, (_, i) => i);
  const wrong = [];
  const compare = (name, { lat, lon }, [lonWanted, latWanted]) => {
    if (!Object.is(lon, lonWanted) || !Object.is(lat, latWanted)) wrong.push(name);
  };
  for (const { why, report, ...record } of answers.lonlat)
    compare(`${why}: ${record.label}`, geoind.obfuscate({ ...record, key }), report);
  const places = [
    [0, 0],
    [2.2945, 48.8584],
    [-180, -90],
    [13, 89.99999],
  ];
  for (const [name, epsilon, decimals] of [
    ["SphericalLaplace", 0.01, 5],
    ["SphericalLaplace, three decimals", 0.01, 3],
    ["SphericalLaplace, wide", 3e-6, 5],
  ])
    for (const [i, [lon, lat]] of places.entries()) {
      const report = geoind.obfuscate({ lat, lon, epsilon, decimals, key, label: "abcd"[i] });
      compare(`${name} ${i}`, report, answers.reports[name][i]);
    }
  for (const { person, cell, report, ...place } of answers["same places"])
    compare(`${person} ${cell}`, new geoind.SamePlace(key, { cell }).obfuscate({ ...place, person }), report);
  const mechanism = new geoind.Interpolated(JSON.stringify(answers.city.file));
  for (const { report, ...record } of answers.city.records)
    compare(`city ${record.label}`, geoind.obfuscate({ ...record, mechanism, key }), report);
  for (const { why, method, person, steps, state } of answers.sessions) {
    const session = new geoind.TraceSession(new geoind.SparseVector(method), { key, person });
    for (const [time, lon, lat, ...answer] of steps)
      compare(`${why} ${time}`, session.report({ lat, lon, time }), answer);
    if (JSON.stringify(JSON.parse(session.state())) !== JSON.stringify(state)) wrong.push(`${why}: state`);
  }
  return wrong;
}
