"""One small comparison for all tests that look at one."""

import pandas as pd
import pytest

from geoind.evaluation import compare
from tests.evaluation.small import SMALL


@pytest.fixture(scope="session")
def small() -> pd.DataFrame:
    return compare(SMALL)
