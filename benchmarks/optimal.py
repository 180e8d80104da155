"""Time against size of the two optimal mechanisms, beside HiGHS and qif, and how the cost grows.

python3 dev.py bench optimal            prints the tables and writes docs/benchmarks/optimal.md
python3 dev.py bench optimal --large    also 15x15 to 30x30, and peers at 7x7 and 9x9 (an hour)

Every solve runs in a process of its own: peers may abort, and only so is their peak memory theirs. The measured
epsilon tells whether a matrix keeps the promise that it was asked for.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from geoind import Channel, Grid, Prior, distances, max_adversary_error_given_loss, min_loss_given_epsilon

EPSILON = 0.01
CELL = 100.0
MAX_LOSS = 100.0
LIMIT = 300
"""Seconds for a peer's solve."""
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "optimal.md"


def problem(side: int, kind: str) -> Prior:
    """Return a uniform prior, or one that is skewed towards a corner."""
    grid = Grid(0, 0, cell=CELL, columns=side, rows=side)
    if kind == "uniform":
        return Prior.uniform(grid)
    row, column = np.divmod(np.arange(side * side), side)
    return Prior.from_counts(grid, 1 / (1 + (row - 1.0) ** 2 + (column - 1.0) ** 2) ** 1.5)


def by_geoind(prior: Prior, program: str) -> np.ndarray:
    """Solve with this library."""
    if program == "least loss":
        return min_loss_given_epsilon(prior, epsilon=EPSILON).matrix
    return max_adversary_error_given_loss(prior, max_loss=MAX_LOSS, adversary_loss=distances.squared).matrix


def by_highs(prior: Prior, program: str) -> np.ndarray:
    """Solve the program as it is written, with scipy's HiGHS and default settings."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

    xy, mass = prior.sites.xy, prior.mass
    n = len(mass)
    apart = distances.euclidean(xy, xy)
    sums = kron(eye_array(n), np.ones((1, n)))
    if program == "least loss":
        first, second = np.nonzero(~np.eye(n, dtype=bool))
        count = len(first)
        pairs = csr_array(
            (
                np.concatenate([np.exp(-EPSILON * apart[first, second]), -np.ones(count)]),
                (np.tile(np.arange(count), 2), np.concatenate([first, second])),
            ),
            shape=(count, n),
        )
        rows = kron(pairs, eye_array(n)).tocsr()
        cost = (mass[:, None] * apart).ravel()
        limits = np.zeros(rows.shape[0])
        # The stubs know dense matrices only; scipy takes sparse ones, too.
        answer = linprog(cost, A_ub=rows, b_ub=limits, A_eq=sums, b_eq=np.ones(n))  # type: ignore[call-overload]
        return np.asarray(np.maximum(answer.x, 0).reshape(n, n))
    error = distances.squared(xy, xy) * mass
    guesses = hstack([-kron(error, eye_array(n)), kron(np.ones((n, 1)), eye_array(n))])
    bound = hstack([csr_array((mass[:, None] * apart).reshape(1, -1)), csr_array((1, n))])
    answer = linprog(  # type: ignore[call-overload]
        np.concatenate([np.zeros(n * n), -np.ones(n)]),
        A_ub=csr_array(vstack([guesses, bound])),
        b_ub=np.append(np.zeros(n * n), MAX_LOSS),
        A_eq=csr_array(hstack([sums, csr_array((n, n))])),
        b_eq=np.ones(n),
    )
    return np.asarray(np.maximum(answer.x[: n * n], 0).reshape(n, n))


def by_qif(prior: Prior, program: str) -> np.ndarray:
    """Solve with qif's default solver."""
    import qif

    n = len(prior.mass)
    apart = distances.euclidean(prior.sites.xy, prior.sites.xy).tolist()
    mass = np.asarray(prior.mass)
    if program == "least loss":
        solve = qif.mechanism.d_privacy.min_loss_given_d
        return np.asarray(solve(mass, n, lambda a, b: EPSILON * apart[a][b], lambda a, b: apart[a][b]))
    solve = qif.mechanism.l_risk.max_risk_given_max_loss
    return np.asarray(solve(mass, n, n, MAX_LOSS, lambda a, b: apart[a][b] ** 2, lambda a, b: apart[a][b]))


SOLVERS = {"geoind": by_geoind, "HiGHS": by_highs, "qif": by_qif}


def child(solver: str, program: str, side: int, kind: str) -> None:
    """Solve once and print what it took and what came out."""
    import resource

    prior = problem(side, kind)
    SOLVERS[solver](problem(2, kind), program)  # load what is imported on first use
    start, cpu = time.perf_counter(), time.process_time()
    matrix = SOLVERS[solver](prior, program)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    channel = Channel(prior.sites, prior.sites, matrix)
    loss = distances.euclidean(prior.sites.xy, prior.sites.xy)
    value = float(prior.mass @ (matrix * loss).sum(axis=1))
    if program != "least loss":
        joint = prior.mass[:, None] * matrix
        value = float((joint.T @ distances.squared(prior.sites.xy, prior.sites.xy)).min(axis=1).sum())
    print(json.dumps([seconds, cpu, memory, value, channel.epsilon]))


def measure(solver: str, program: str, side: int, kind: str) -> list[float] | str:
    """Return seconds, processor seconds, bytes, value and measured epsilon, or why there are none."""
    limit = None if solver == "geoind" else LIMIT
    command = [sys.executable, __file__, "--child", solver, program, str(side), kind]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, check=False, text=True)
    except subprocess.TimeoutExpired:
        return f"over {LIMIT} s"
    return json.loads(done.stdout) if done.returncode == 0 else "failed"


def table(program: str, sides: dict[str, list[tuple[int, str]]]) -> list[str]:
    """Return the lines of one program's table."""
    what = "expected loss" if program == "least loss" else "adversary's error"
    lines = [
        f"| grid | prior | solver | wall s | CPU s | peak MB | {what} | measured epsilon |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    grown: list[tuple[int, float]] = []
    for solver, cases in sides.items():
        for side, kind in cases:
            got = measure(solver, program, side, kind)
            start = f"| {side}x{side} | {kind} | {solver} |"
            if isinstance(got, str):
                lines.append(f"{start} {got} | | | | |")
            else:
                seconds, cpu, memory, value, epsilon = got
                kept = f"{epsilon:.6f}" if epsilon < math.inf else "infinite"
                lines.append(f"{start} {seconds:.2f} | {cpu:.2f} | {memory / 1e6:.0f} | {value:.6f} | {kept} |")
                if solver == "geoind" and kind == "skewed":
                    grown.append((side * side, cpu))
            print(lines[-1], flush=True)
    if len(grown) > 1:
        (small, quick), (large, slow) = grown[-2:]
        power = math.log(slow / quick) / math.log(large / small)
        lines += ["", f"Between {small} and {large} cells, skewed, geoind's CPU time grows as n^{power:.1f}."]
    return lines


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        solver, program, side, kind = options.child
        child(solver, program, int(side), kind)
        return
    kinds = ("uniform", "skewed")
    ours = [(side, kind) for side in (3, 5, 7, 9, 12) for kind in kinds]
    peers = [(side, kind) for side in (3, 4, 5) for kind in kinds]
    if options.large:
        ours += [(15, "uniform"), (15, "skewed"), (20, "uniform"), (20, "skewed"), (25, "uniform"), (25, "skewed")]
        ours += [(30, "uniform")]
        peers += [(7, "uniform"), (9, "uniform")]
    least = table("least loss", {"geoind": ours, "HiGHS": peers, "qif": peers})
    game = [(side, kind) for side in (3, 5, 7, 9) for kind in kinds]
    game_table = table("game", {"geoind": game, "HiGHS": game[:6], "qif": game[:4]})
    command = "python3 dev.py bench optimal" + " --large" * options.large
    load = os.getloadavg()[0]
    page = [
        "# Optimal mechanisms: time against size",
        "",
        f"By `{command}`, on {os.cpu_count()} cores, load {load:.1f} at the end: where",
        "others are at work, the CPU seconds say more than the wall seconds. A smaller loss with an epsilon above",
        "the promise, or an infinite one, is no solution.",
        "",
        f"## Least loss, epsilon {EPSILON} per metre, cells of {CELL:.0f} m",
        "",
        *least,
        "",
        f"## Largest squared error of an adversary, expected loss at most {MAX_LOSS:.0f} m",
        "",
        *game_table,
        "",
    ]
    OUT.write_text("\n".join(page))


if __name__ == "__main__":
    main()
