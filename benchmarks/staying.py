"""What a session pays in a year at home and in a year of commuting, by the parameters of its tests.

python3 dev.py bench staying          prints the table of docs/traces.md

A question every 15 minutes, epsilon = ln 4 / 100 m. The commuter works 3 km away, from 9 to 17 h on five days a
week.
"""

import math

import numpy as np

from geoind import Projection
from geoind.arrays import FloatArray
from geoind.traces import SparseVector, obfuscate_traces

EPSILON = math.log(4) / 100
YEARS = 10
TIMES = np.arange(365 * 96) * 900.0
PLANE = Projection(24.94, 60.17)
WORK = np.array([3000.0, 0.0])


def commuting() -> FloatArray:
    """Return the positions of a year, in metres."""
    day, hour = np.divmod(TIMES / 3600, 24)
    return np.asarray(np.where(((day % 7 < 5) & (hour >= 9) & (hour < 17))[:, None], WORK, 0.0))


def measure(method: SparseVector, xy: FloatArray, year: int) -> tuple[float, float, int]:
    """Return what a year costs in reports, the mean error in metres, and the number of different reports."""
    key = year.to_bytes(32, "big")
    lonlat = PLANE.to_lonlat(xy)
    reports, spent = obfuscate_traces(lonlat, persons=[0] * len(xy), times=TIMES, method=method, key=key)
    error = float(np.hypot(*(PLANE.to_xy(reports) - xy).T).mean())
    return spent["0"] / EPSILON, error, len(np.unique(reports, axis=0))


def main() -> None:
    """Print a row for each choice of parameters."""
    methods = {"for_accuracy": SparseVector.for_accuracy(3.89 / EPSILON)} | {
        f"{test} epsilon, {limit} / epsilon": SparseVector(EPSILON, test * EPSILON, limit / EPSILON, EPSILON / 2)
        for test, limit in ((1, 43), (2, 23), (3, 16.3), (4, 13))
    }
    home, commuter = np.zeros((len(TIMES), 2)), commuting()
    print("| tests, limit | home: paid | different | commuter: paid a day | mean error | different |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, method in methods.items():
        stays = np.median([measure(method, home, year) for year in range(YEARS)], axis=0)
        moves = np.median([measure(method, commuter, year) for year in range(YEARS)], axis=0)
        print(
            f"| {name}, {method.limit:.0f} m | {stays[0]:.0f} | {stays[2]:.0f} | "
            f"{moves[0] / 365:.1f} | {moves[1]:.0f} m | {moves[2]:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
