"""What a backend can check of reports that devices have made: it has neither the true location nor the key."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, as_floats
from geoind.errors import InvalidInputError
from geoind.mechanisms.noise import DECIMALS, snap_lonlat
from geoind.mechanisms.spherical import as_decimals

__all__ = ["valid_reports"]


def valid_reports(
    lonlat: ArrayLike, *, labels: Sequence[Hashable] | None = None, decimals: int = DECIMALS
) -> npt.NDArray[np.bool_]:
    """Return which reports can be those of `SphericalLaplace`, and repeat where they have to.

    A report is a point of the public lattice. A coordinate with more digits, a longitude of -180 or -0.0 shows a
    device that publishes something else, perhaps the truth. Reports with a key repeat for the same record: of each
    label, all reports are equal to the first. A device that passes may still send a wrong place: only its user
    can know that.

    Parameters
    ----------
    lonlat : (n, 2) array
        Reports in degrees. Values that are not finite or not on the globe are not valid.
    labels : sequence, optional
        What identifies the record of each report, if the device draws with a key.
    decimals : int
        Of the lattice, 0 to 5.

    Examples
    --------
    >>> valid_reports([[2.2945, 48.8584], [2.29450001, 48.8584]]).tolist()
    [True, False]
    >>> valid_reports([[2.29, 48.85], [2.29, 48.85], [2.31, 48.86]], labels=["home", "home", "home"]).tolist()
    [True, True, False]
    """
    reports = as_floats(lonlat, "lonlat")
    if reports.ndim != 2 or reports.shape[1] != 2:
        raise InvalidInputError(f"lonlat must have shape (n, 2), got {reports.shape}")
    valid = np.asarray((np.abs(reports) <= [180.0, 90.0]).all(axis=1))
    valid[valid] = (snap_lonlat(reports[valid], as_decimals(decimals)) == reports[valid]).all(axis=1)
    valid &= ~(np.signbit(reports) & (reports == 0)).any(axis=1)
    if labels is None:
        return valid
    if len(labels) != len(reports):
        raise InvalidInputError(f"labels must be one per report: {len(labels)} for {len(reports)}")
    first: dict[Hashable, list[float]] = {}
    for row, (label, report) in enumerate(zip(labels, reports.tolist(), strict=True)):
        valid[row] &= first.setdefault(label, report) == report
    return valid
