from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from geoind import Grid, InvalidInputError
from geoind.evaluation import PAPER_SETTING, Setting, from_picture
from geoind.evaluation.setting import REGIONS


def test_the_paper_wants_what_cloaking_costs() -> None:
    assert PAPER_SETTING.loss == pytest.approx(100 * (4 + 4 * np.sqrt(2)) / 9, rel=1e-14)
    assert PAPER_SETTING.loss == pytest.approx(107.298, abs=5e-4)


def test_priors_are_uniform_over_the_marked_cells() -> None:
    sizes = {name: np.count_nonzero(prior.mass) for name, prior in PAPER_SETTING.priors.items()}
    assert sizes == {
        "uniform": 81,
        "central zone": 9,
        "corner zone": 9,
        "straddling zones": 16,
        "left columns": 27,
        "middle row": 9,
        "diagonal band": 25,
        "zone centres": 9,
        "four corners": 4,
    }
    for prior in PAPER_SETTING.priors.values():
        assert np.unique(prior.mass[prior.mass > 0]).size == 1


def test_pictures_have_north_at_the_top_and_west_on_the_left() -> None:
    corner = PAPER_SETTING.prior("corner zone")
    x, y = corner.mass @ PAPER_SETTING.grid.xy
    assert (x, y) == pytest.approx((100, 700))
    x, y = PAPER_SETTING.prior("left columns").mass @ PAPER_SETTING.grid.xy
    assert (x, y) == pytest.approx((100, 400))


def test_every_picture_fits_the_grid() -> None:
    assert all(from_picture(picture).shape == (81,) for picture in REGIONS.values())


@pytest.mark.parametrize("picture", ["", "# .\n#", "# x"])
def test_a_bad_picture_is_refused(picture: str) -> None:
    with pytest.raises(InvalidInputError, match="picture"):
        from_picture(picture)


def test_a_setting_can_be_varied_but_not_changed() -> None:
    wanted = replace(PAPER_SETTING, wanted_loss=50.0)
    assert wanted.loss == 50
    with pytest.raises(FrozenInstanceError):
        wanted.zone = (1, 1)  # type: ignore[misc]
    with pytest.raises(TypeError):
        wanted.weights["mine"] = np.ones(81)  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        wanted.weights["uniform"][0] = 5  # type: ignore[index]


@pytest.mark.parametrize("zone", [(2, 3), (0, 3), (3, 10)])
def test_zones_must_divide_the_grid(zone: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="zone"):
        replace(PAPER_SETTING, zone=zone)


@pytest.mark.parametrize("loss", [0, -1, float("nan"), float("inf")])
def test_an_impossible_loss_is_refused(loss: float) -> None:
    with pytest.raises(InvalidInputError, match="wanted_loss"):
        replace(PAPER_SETTING, wanted_loss=loss)


def test_an_unknown_prior_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"central zone.*'nowhere'"):
        PAPER_SETTING.prior("nowhere")


def test_weights_must_fit_the_grid() -> None:
    with pytest.raises(InvalidInputError):
        Setting(Grid(0, 0, cell=100, columns=3, rows=3), weights={"uniform": np.ones(8)})
