"""The comparison of mechanisms of Andrés et al. (CCS 2013), for any grid, prior and loss."""

from geoind.evaluation.comparison import compare
from geoind.evaluation.own import Contender
from geoind.evaluation.plain import as_plain_data, stored_comparison
from geoind.evaluation.setting import PAPER_SETTING, Setting, from_picture
from geoind.evaluation.synthetic import City, synthetic_city

__all__ = [
    "PAPER_SETTING",
    "City",
    "Contender",
    "Setting",
    "as_plain_data",
    "compare",
    "from_picture",
    "stored_comparison",
    "synthetic_city",
]
