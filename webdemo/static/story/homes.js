// Where people may be: the places in the buildings of the town, in metres to the east and north of its centre.

// Points from decimetres: the first one, and the steps from each to the next.
export function pointsOf(steps) {
  let x = 0,
    y = 0;
  return Array.from({ length: steps.length / 2 }, (_, i) => {
    x += steps[2 * i];
    y += steps[2 * i + 1];
    return { x: x / 10, y: y / 10 };
  });
}

export const homes = (() => {
  const { xy, building, mass } = TOWN.homes,
    points = pointsOf(xy),
    sum = mass.reduce((a, b) => a + b, 0);
  return {
    x: Float64Array.from(points, ({ x }) => x),
    y: Float64Array.from(points, ({ y }) => y),
    building,
    mass: mass.map((value) => value / sum),
  };
})();
