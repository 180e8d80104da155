"""The `Mechanism` protocol, four members, whatever the class; and the sources of its random words.

A new mechanism is a frozen dataclass with `epsilon`, `space`, `reach` and `sample`, one line in
`geoind/__init__.pyi` and one example in tests/mechanisms/examples.py. Calls, tables, queries, audits and ledgers
then accept it, and the common test suite runs on it. It may have more members, which are optional:

- `check_truths(points)` raises for truths that `sample` does not accept, so that they are not charged first;
- `accepts(points)` returns for each truth whether `sample` accepts it, so that a table can leave out the others;
- `check_inside(points)` raises for locations where `reach` does not hold;
- `off_site_level` is the privacy loss beyond epsilon times distance, for a mechanism that first moves the truth to
  one of finitely many sites;
- `decimals` is the number of decimals of its reports, if these already lie on the public lattice of degrees;
- `mean_radius` is their mean error in metres, for summaries;
- `outputs` and `sample_outputs(points, rng=)` are the sites of all its reports, and the numbers of drawn ones;
- `sample_one(lon, lat, first, second)` returns a report of one location from two random words, and `sample_output`
  the number of an output: single calls take a tenth of the time of an array with one row;
- `noise_epsilon` is the epsilon of a Laplace density around the truth, from which a population can be estimated;
- `sigma` is that of Gaussian noise, in metres, where epsilon is `math.inf`.

The accountant and the ledger compute the cost of a report from its epsilon. For noise without one, register
functions with `loss_of.register` (`geoind.accounting.losses`) and `as_cost.register` (`geoind.budgets.costs`).

Every mechanism asks for 64-bit words, a fixed number per point. There are three sources:

- the default, `rng=None`: a cipher keystream under a fresh key from the operating system for each block of
  points. No state outlives the block, so nothing can be read from memory later or be copied by a forked worker;
- `KeyedRandomness`: a secret key and a label per record give the same words again for the same record;
- numpy `Generator`s and integer seeds, **for simulation and tests only**: the seed, or enough of the stream,
  is enough to remove the noise.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Literal, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, FloatArray
from geoind.errors import InvalidInputError
from geoind.keys import KEY_BYTES, KeyedRandomness, Words

Space: TypeAlias = Literal["lonlat", "xy"]
"""Kind of coordinates: lon/lat degrees (WGS84), longitude first; or metres in a plane."""

UNITS: dict[str, str] = {"lonlat": "degrees", "xy": "metres"}

MEMBERS = ("epsilon", "space", "reach", "sample")

CHUNK = bytes(1 << 18)
_pair = Struct("<QQ").unpack


@runtime_checkable
class Randomness(Protocol):
    """A source of 64-bit words."""

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:
        """Return (n, count) words for the (n, 2) points.

        `purpose` names the mechanism and its parameters. A keyed source gives independent words for
        another purpose or another point, so that two reports of one record never share their noise.
        """
        ...

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:
        """Return two more words of the record in this row: the pair with this number, 0, 1, 2, ...

        Asked for by the few draws that their first words do not decide. A keyed source repeats them, too.
        """
        ...


RandomnessLike: TypeAlias = Randomness | np.random.Generator | int | None


@runtime_checkable
class Mechanism(Protocol):
    """An object that draws reports of true locations with a known privacy loss per metre.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=0.01)
    >>> isinstance(noise, Mechanism), noise.space, round(noise.reach(0.95))
    (True, 'xy', 474)
    """

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre; per metre on the ground where the space is "lonlat"."""
        ...

    @property
    def space(self) -> Space:
        """The coordinates of points and reports: "lonlat" degrees or "xy" metres."""
        ...

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of its truth with at least this probability.

        It must not depend on the truth or on a draw: a query's radius, which is public, is enlarged by it.
        """
        ...

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points."""
        ...


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Return whether a value has all members of a mechanism, without evaluating them.

    `isinstance` would compute a channel's epsilon, which takes seconds for a large one.
    """
    own = getattr(value, "__dict__", {})
    return all(name in own or hasattr(type(value), name) for name in MEMBERS)


def space_of(mechanism: object) -> Space:
    """Return the space of a mechanism; raise an error if it is not a mechanism or the space is not valid.

    Examples
    --------
    >>> from geoind import SphericalLaplace
    >>> space_of(SphericalLaplace(0.01))
    'lonlat'
    """
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must have {', '.join(MEMBERS)}, got {type(mechanism).__name__}")
    if mechanism.space not in UNITS:
        raise InvalidInputError(f"a mechanism's space must be 'lonlat' or 'xy', got {mechanism.space!r}")
    return mechanism.space


def require_space(space: Space, mechanism: object) -> Mechanism:
    """Return the mechanism; raise an error if it is not a mechanism or has another space.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> require_space("lonlat", PlanarLaplace(0.01))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: PlanarLaplace takes metres, not degrees: use Projected(mechanism, ...
    """
    given = space_of(mechanism)
    if given != space:
        advice = (
            "use Projected(mechanism, Projection(lon, lat))" if space == "lonlat" else "it needs no projection"
        )
        raise InvalidInputError(f"{type(mechanism).__name__} takes {UNITS[given]}, not {UNITS[space]}: {advice}")
    return cast("Mechanism", mechanism)


@runtime_checkable
class _ChecksTruths(Protocol):
    def check_truths(self, points: FloatArray) -> None: ...


def check_truths(mechanism: object, points: FloatArray) -> None:
    """Raise an error for truths that `mechanism.sample` does not accept, before anything is charged or drawn."""
    if isinstance(mechanism, _ChecksTruths):
        mechanism.check_truths(points)


def accepted(mechanism: object, points: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which truths `mechanism.sample` accepts; raise for others of a mechanism that does not say which."""
    accepts = getattr(mechanism, "accepts", None)
    if accepts is not None:
        return np.asarray(accepts(points))
    check_truths(mechanism, points)
    return np.ones(len(points), dtype=bool)


@runtime_checkable
class _ChecksInside(Protocol):
    def check_inside(self, points: FloatArray) -> None: ...


def check_inside(part: object, points: FloatArray) -> None:
    """Raise an error for truths outside the region where the `reach` of a mechanism or of a step holds."""
    if isinstance(part, _ChecksInside):
        part.check_inside(points)


def off_site_level(mechanism: Mechanism) -> float:
    """Return the privacy loss beyond epsilon times distance: zero except for mechanisms between sites."""
    return float(getattr(mechanism, "off_site_level", 0.0))


def mean_error(mechanism: Mechanism) -> float:
    """Return the mean distance in metres between truth and report, its own or that of its quantiles."""
    own = getattr(mechanism, "mean_radius", None)
    if own is not None:
        return float(own)
    return float(np.mean([mechanism.reach((number + 0.5) / 200) for number in range(200)]))


def as_randomness(rng: RandomnessLike, count: int) -> Randomness:
    """Return the source that `rng` stands for, ready for `count` points."""
    if isinstance(rng, KeyedRandomness):
        if len(rng.labels) != count:
            raise InvalidInputError(f"labels must be one per point: {len(rng.labels)} for {count}")
        return rng
    if rng is None:
        return _SystemRandomness()
    if isinstance(rng, np.random.Generator):
        return _SimulatedRandomness(rng)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise InvalidInputError("rng must not be negative, got a negative seed")
        return _SimulatedRandomness(np.random.default_rng(int(rng)))
    if isinstance(rng, Randomness):
        return rng
    raise InvalidInputError(
        f"rng must be None, a KeyedRandomness, a numpy Generator or a seed, got {type(rng).__name__}"
    )


def at_places(source: Randomness, places: FloatArray) -> Randomness:
    """Return the source; if it is keyed, its words depend on these places instead of a mechanism's points."""
    return source.at(places) if isinstance(source, KeyedRandomness) else source


def fresh_pair(number: int = 0) -> tuple[int, int]:  # noqa: ARG001
    """Return two words of the operating system, whatever the number of the pair is."""
    first, second = _pair(os.urandom(16))
    return first, second


def words_by_block(source: Randomness, points: FloatArray, count: int, purpose: str) -> Callable[[slice], Words]:
    """Return a function from a block of the points to its words, `count` for each.

    The words are drawn with their block, in its thread, where the order does not matter: the words of all points
    are never in memory at once. A generator draws all of them first.
    """
    if isinstance(source, _SystemRandomness | KeyedRandomness):
        return lambda part: source.only(part).words(points[part], count, purpose)
    words = source.words(points, count, purpose)
    return lambda part: words[part]


@dataclass(frozen=True)
class _SystemRandomness:
    """AES-256 in counter mode under a fresh key from the operating system for each call."""

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return fresh words."""
        size = 8 * count * len(points)
        if size <= 256:
            return np.frombuffer(os.urandom(size), np.uint64).reshape(len(points), count)
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        stream = Cipher(algorithms.AES256(os.urandom(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
        result = np.empty((len(points), count), np.uint64)
        target = result.data.cast("B")
        for start in range(0, size, len(CHUNK)):
            part = target[start : start + len(CHUNK)]
            stream.update_into(memoryview(CHUNK)[: len(part)], part)
        return result

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return fresh words."""
        return fresh_pair()

    def only(self, rows: slice) -> "_SystemRandomness":  # noqa: ARG002
        """Return the source of these records: no two calls have anything in common."""
        return self


@dataclass(frozen=True)
class _SimulatedRandomness:
    """A numpy generator: fast, repeatable, and no protection at all."""

    generator: np.random.Generator

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return the generator's next words."""
        return self.generator.integers(0, 1 << 64, size=(len(points), count), dtype=np.uint64)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the generator's next words."""
        first, second = self.generator.integers(0, 1 << 64, size=2, dtype=np.uint64).tolist()
        return first, second
