"""Time against size of the two optimal mechanisms, compared with HiGHS and qif.

python3 dev.py bench optimal            prints the tables and writes docs/benchmarks/optimal.md
python3 dev.py bench optimal --large    also 15x15 to 30x30, and peers at 7x7 and 9x9 (an hour)
python3 dev.py bench optimal --parts    measures two parts of the solvers and rewrites their section only
python3 dev.py bench optimal --game     measures the adversary's error against size and rewrites that section only

Every solve runs in its own process, because peers may abort and to measure their peak memory. The measured epsilon
shows whether a matrix has the requested epsilon.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import numpy as np
from scipy.optimize import minimize_scalar

from geoind import Channel, Grid, Prior, distances, max_adversary_error_given_loss, min_loss_given_epsilon
from geoind.channels import posterior_entropy
from geoind.channels.metrics import conditional_entropy
from geoind.distances import Distance
from geoind.optimal.adversary_error import Choice
from geoind.optimal.game import Game

EPSILON = 0.01
CELL = 100.0
MAX_LOSS = 100.0
LIMIT = 300
"""Time limit of a peer's solve, in seconds."""
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
        # The stubs allow dense matrices only; scipy accepts sparse ones as well.
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


def by_scipy_lapack(prior: Prior, program: str) -> np.ndarray:
    """Solve with this library, with scipy's LAPACK wrappers instead of direct calls."""
    from geoind.optimal import lapack

    lapack._direct = lambda _: None  # type: ignore[assignment]
    return by_geoind(prior, program)


SOLVERS = {"geoind": by_geoind, "HiGHS": by_highs, "qif": by_qif, "scipy LAPACK": by_scipy_lapack}


def lapack_table() -> list[str]:
    """Return the CPU time of the solver with direct LAPACK calls and with scipy's wrappers."""
    lines = ["| grid | prior | LAPACK | CPU s, two runs |", "| --- | --- | --- | ---: |"]
    for side, kind in ((15, "uniform"), (15, "skewed"), (20, "uniform")):
        for solver, name in (("geoind", "direct calls"), ("scipy LAPACK", "scipy's wrappers")):
            runs = [measure(solver, "least loss", side, kind) for _ in range(2)]
            times = ", ".join(run if isinstance(run, str) else f"{run[1]:.1f}" for run in runs)
            lines.append(f"| {side}x{side} | {kind} | {name} | {times} |")
            print(lines[-1], flush=True)
    return lines


def entropy_table() -> list[str]:
    """Return the entropy of each choice of an optimum, and that of Frank-Wolfe steps by HiGHS."""
    lines = ["| grid | adversary's loss | optimum | entropy, bits | CPU s |", "| --- | --- | --- | ---: | ---: |"]
    for side, error in ((5, "squared"), (5, "discrete"), (7, "squared")):
        prior, loss = problem(side, "skewed"), getattr(distances, error)
        for choose in get_args(Choice):
            start = time.process_time()
            best = max_adversary_error_given_loss(prior, max_loss=MAX_LOSS, adversary_loss=loss, choose=choose)
            taken, found = time.process_time() - start, posterior_entropy(best, prior)
            lines.append(f"| {side}x{side} | {error} | `{choose}` | {found:.3f} | {taken:.2f} |")
        start = time.process_time()
        found = frank_wolfe(prior, loss)
        taken = time.process_time() - start
        lines.append(f"| {side}x{side} | {error} | Frank-Wolfe, {STEPS} programs | {found:.3f} | {taken:.2f} |")
        print("\n".join(lines[-5:]), flush=True)
    return lines


STEPS = 60


def frank_wolfe(prior: Prior, adversary_loss: Distance) -> float:
    """Return the entropy that Frank-Wolfe steps reach over the optimal mechanisms, each step a linear program."""
    game = Game([prior], None, distances.euclidean, adversary_loss, symmetric=True)
    optimum = game.optimum(MAX_LOSS)
    mass, matrix = game.masses[0][:, None], optimum.matrix

    def entropy(share: float) -> float:
        return conditional_entropy(mass * ((1 - share) * matrix + share * end))

    for step in range(STEPS):
        joint = mass * matrix
        total = joint.sum(axis=0)
        # The gradient of the entropy at a mixture with the uniform posterior, which is positive everywhere.
        mix = 1e-3 / (step + 1)
        posterior = np.where(total > 0, joint / np.where(total > 0, total, 1.0), 1 / len(joint))
        reward = -mass * np.log2((1 - mix) * posterior + mix / len(joint))
        end = game.program.solve(reward=reward, max_loss=MAX_LOSS, min_error=optimum.value * (1 - 1e-9)).matrix
        share = float(minimize_scalar(lambda share: -entropy(share), bounds=(0, 1), method="bounded").x)
        matrix = (1 - share) * matrix + share * end
    return conditional_entropy(mass * matrix)


def parts() -> list[str]:
    """Return the section on two parts of the solvers."""
    return [
        PARTS,
        "",
        "Direct calls of LAPACK release the interpreter's lock; scipy's wrappers hold it. From 200 inputs on",
        "the blocks are factored in one thread per core. The CPU time is the same, so with the wrappers the wall",
        "time would be the CPU time: 1.5 to 1.8 times as long on two cores, by the first table.",
        "",
        *lapack_table(),
        "",
        "Conditional entropy of the truth given the report, expected loss at most "
        f"{MAX_LOSS:.0f} m, skewed prior. All have",
        "the same adversary error. Frank-Wolfe is the generic alternative to the method of `entropy`: a linear",
        "program of HiGHS per step.",
        "",
        *entropy_table(),
        "",
    ]


GAME = "## Largest error of an adversary, skewed prior, time against size"


def game_section() -> list[str]:
    """Return the section on the adversary's error: CPU time for each loss, bound and choice, and its growth."""
    lines = [
        "| grid | adversary's loss | expected loss at most | optimum | wall s | CPU s | adversary's error | gap |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    first = dict.fromkeys(("euclidean", "squared", "discrete"), 0.0)
    slowest = [dict(first) for _ in SIDES]
    cases: list[tuple[int, str, float, Choice]] = [
        (side, error, bound, "symmetric") for side in SIDES for error in first for bound in (50.0, 100.0, 150.0)
    ]
    cases += [(SIDES[-1], "euclidean", MAX_LOSS, choose) for choose in ("vertex", "entropy", "worst_loss")]
    for side, error, bound, choose in cases:
        start, cpu = time.perf_counter(), time.process_time()
        best = max_adversary_error_given_loss(
            problem(side, "skewed"), max_loss=bound, adversary_loss=getattr(distances, error), choose=choose
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        proof = best.certificate
        lines.append(
            f"| {side}x{side} | {error} | {bound:.0f} | `{choose}` | {seconds:.1f} | {cpu:.2f} "
            f"| {proof.objective:.6f} | {proof.gap:.0e} |"
        )
        print(lines[-1], flush=True)
        if choose == "symmetric":
            times = slowest[SIDES.index(side)]
            times[error] = max(times[error], cpu)
    ratio = math.log(SIDES[-1] ** 2 / SIDES[0] ** 2)
    powers = [f"n^{math.log(slowest[-1][error] / slowest[0][error]) / ratio:.1f} ({error})" for error in first]
    grown = f"The largest CPU time of the symmetric optimum grows as {', '.join(powers)}"
    grown += f" between {SIDES[0] ** 2} and {SIDES[-1] ** 2} cells."
    load = f"Load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores at the end."
    return [GAME, "", *lines, "", f"{grown} {load}", ""]


SIDES = (9, 12, 15)

PARTS = "## Two parts of the solvers"


def child(solver: str, program: str, side: int, kind: str) -> None:
    """Solve once and print time, memory and result."""
    import resource

    prior = problem(side, kind)
    SOLVERS[solver](problem(2, kind), program)  # loads lazy imports
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
    """Return seconds, CPU seconds, bytes, value and measured epsilon, or the reason why there are none."""
    limit = LIMIT if solver in ("HiGHS", "qif") else None
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
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--game", action="store_true")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.parts:
        kept = OUT.read_text().split(PARTS)[0].rstrip()
        OUT.write_text("\n".join([kept, "", *parts()]))
        return
    if options.game:
        before, after = OUT.read_text().split(GAME)
        OUT.write_text(before + "\n".join([*game_section(), PARTS]) + after.split(PARTS)[1])
        return
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
        f"By `{command}`, on {os.cpu_count()} cores, load {load:.1f} at the end: on a",
        "machine with other work the CPU time is more reliable than the wall time. A smaller loss with an epsilon",
        "above the requested one, or an infinite one, is not a solution.",
        "",
        f"## Least loss, epsilon {EPSILON} per metre, cells of {CELL:.0f} m",
        "",
        *least,
        "",
        f"## Largest squared error of an adversary, expected loss at most {MAX_LOSS:.0f} m",
        "",
        *game_table,
        "",
        *game_section(),
        *parts(),
    ]
    OUT.write_text("\n".join(page))


if __name__ == "__main__":
    main()
