import numpy as np
import pytest

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.optimal.problem import as_loss, as_metric

METRIC = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [2.0, 1.5, 0.0]])


def changed(row: int, column: int, value: float) -> FloatArray:
    matrix = METRIC.copy()
    matrix[row, column] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (changed(0, 1, -1.0), "not negative"),
        (changed(0, 1, np.nan), "finite"),
        (changed(0, 1, np.inf), "finite"),
        (changed(1, 1, 1e-300), "0 from a site to itself"),
        (changed(0, 1, 1.0 + 1e-6), "symmetric"),
    ],
)
def test_what_is_no_metric_is_refused(matrix: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_metric(matrix, 3)


def test_of_two_distances_that_differ_by_rounding_the_smaller_one_counts() -> None:
    """The promise is epsilon times the distance: a larger one would promise less."""
    rounded = as_metric(changed(0, 1, 1.0 + 1e-12), 3)
    assert rounded[0, 1] == rounded[1, 0] == 1.0


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(SitesMismatchError, match=r"\(3, 3\)"):
        as_metric(METRIC[:2], 3)
    with pytest.raises(SitesMismatchError, match="cost must give"):
        as_loss(METRIC, (3, 2), "cost")


def test_losses_may_be_negative_and_must_be_finite() -> None:
    assert as_loss(-METRIC, (3, 3)).min() == -2.0
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="loss must be finite"):
            as_loss(changed(0, 1, bad), (3, 3))
