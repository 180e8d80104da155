"""Run the tests that a mutant could fail: those that execute its line, the quick ones first, until one fails.

A process that has loaded the library and its tests forks for each mutant, and the child swaps the code of the
functions that changed. What a mutant changes while a module loads needs a child that has not loaded it yet.
"""

import ast
import contextlib
import gc
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import coverage
import pytest

__all__ = ["Knowledge", "Loaded", "fails", "measured"]

MEMORY = 8 * 2**30
"""Bytes that a mutant may take: some of them ask for all there is."""

QUICK = 0.3
"""Seconds; tests below stay in the order of their files, whose fixtures they share."""

OPTIONS = [
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-m",
    "not browser and not jvm and not notebook",
]
# A process that runs tests for a second time has loaded the plugins before.
OPTIONS += ["-W", "ignore:Module already imported"]

FORK = get_context("fork")


@dataclass
class Knowledge:
    """Which tests execute which line, and how long they take."""

    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_of(self, file: str, *places: tuple[int, int]) -> list[str]:
        """Return the tests that execute one of the lines of a file: of the first place where there are any."""
        known = self.lines.get(file, {})
        for first, last in places:
            found = {test for line in range(first, last + 1) for test in known.get(line, ())}
            if found:
                return sorted(found)
        return []


class _Watch:
    """A plugin that notes which lines each test executes, and how long it takes."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = [str(Path(file).resolve()) for file in files]
        self.cover = coverage.Coverage(data_file=None, config_file=False, include=self.files)
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.fixtures: dict[str, set[str]] = {}
        self.current = ""

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.fixtures[item.nodeid] = set(getattr(item, "fixturenames", ()))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.current = nodeid
        self.cover.switch_context(nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        # What a shared fixture executes concerns all tests that use it, not only the first one.
        if fixturedef.scope != "function":
            self.cover.switch_context(f"fixture {fixturedef.argname} {fixturedef.baseid}")
        result = yield
        self.cover.switch_context(self.current)
        return result

    def _tests_in(self, context: str) -> set[str]:
        if not context.startswith("fixture "):
            return {context} - {""}
        _, name, below = context.split(" ", 2)
        return {test for test, names in self.fixtures.items() if name in names and test.startswith(below)}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def knowledge(self, names: Iterable[str]) -> Knowledge:
        data = self.cover.get_data()
        lines = {
            name: {
                line: {test for context in contexts for test in self._tests_in(context)}
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for name, file in zip(names, self.files, strict=True)
        }
        return Knowledge(lines, self.seconds, self.failed)


def measured(files: list[str], tests: list[str]) -> Knowledge:
    """Return what the tests do to the files, from one run of all of them."""

    def run(answer: Connection) -> None:
        watch = _Watch(files)
        watch.cover.start()
        pytest.main([option for option in OPTIONS if option != "-x"] + tests, plugins=[watch])
        watch.cover.stop()
        answer.send(watch.knowledge(files))

    known: Knowledge = _in_child(run)
    return known


def fails(tests: list[str], known: Knowledge, patience: float) -> bool:
    """Return whether one of the tests fails, or more time or memory is taken than is good."""
    return _fails(lambda: _run(tests, known), patience)


class Loaded:
    """A process that has loaded the library and the tests, and tries mutants of functions."""

    def __init__(self, tests: list[str], known: Knowledge) -> None:
        self._ours, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_serve, args=(theirs, tests, known))
        self._process.start()
        theirs.close()

    def fails(self, file: str, tree: ast.AST, tests: list[str], patience: float) -> bool | None:
        """Return whether a test fails with the changed functions of a file; None where they cannot be swapped."""
        self._ours.send((file, tree, tests, patience))
        found: bool | None = self._ours.recv()
        return found

    def close(self) -> None:
        """End the process."""
        self._ours.send(None)
        self._process.join()


def _serve(requests: Connection, tests: list[str], known: Knowledge) -> None:
    _silence()
    pytest.main([*OPTIONS, "--collect-only", *tests])
    while (request := requests.recv()) is not None:
        file, tree, wanted, patience = request
        code = compile(ast.fix_missing_locations(tree), str(Path(file).resolve()), "exec")
        swaps = _swaps(code)
        if swaps is None:
            requests.send(None)
            continue

        def with_swaps(swaps: list[tuple[FunctionType, CodeType]] = swaps, wanted: list[str] = wanted) -> int:
            for function, changed in swaps:
                function.__code__ = changed
            return _run(wanted, known)

        requests.send(_fails(with_swaps, patience))


def _swaps(code: CodeType) -> list[tuple[FunctionType, CodeType]] | None:
    """Return which functions get which code; None where nothing is found to change, or it does not fit."""
    changed = {(part.co_qualname, part.co_firstlineno): part for part in _parts(code)}
    found = []
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == code.co_filename:
            new = changed.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if new is None or new.co_freevars != one.__code__.co_freevars:
                return None
            if new != one.__code__:
                found.append((one, new))
    return found or None


def _parts(code: CodeType) -> Iterable[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _parts(constant)


class _Only:
    """A plugin that runs some tests, the quick ones first."""

    def __init__(self, tests: list[str], known: Knowledge) -> None:
        self.seconds = {_once(test): known.seconds.get(test, 0.0) for test in tests}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if _once(item.nodeid) in self.seconds]
        items[:] = sorted(chosen, key=lambda item: max(QUICK, self.seconds[_once(item.nodeid)]))


def _once(test: str) -> str:
    """Return a test's name with what was escaped in it escaped once: pytest does so at every collection."""
    return re.sub(r"\\+", r"\\", test)


def _run(tests: list[str], known: Knowledge) -> int:
    files = sorted({test.split("::")[0] for test in tests})
    return int(pytest.main([*OPTIONS, *files], plugins=[_Only(tests, known)]))


def _fails(run: Callable[[], int], patience: float) -> bool:
    child = os.fork()
    if not child:
        _end_with(run)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    # The child leads a group of its own: whatever it started ends with it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _end_with(run: Callable[[], int]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        _silence()
        code = run()
    finally:
        os._exit(code)


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _in_child(run: Callable[[Connection], None]) -> Any:
    ours, theirs = FORK.Pipe()

    def work() -> None:
        run(theirs)

    process = FORK.Process(target=work)
    process.start()
    theirs.close()
    answer = ours.recv()
    process.join()
    return answer
