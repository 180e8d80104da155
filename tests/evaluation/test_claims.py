import pandas as pd
import pytest

from geoind.evaluation.claims import CLAIMS, check_claims

ERRORS = {
    "cloaking": 90.0,
    "optimal for uniform": 40.0,
    "optimal for uniform, least error": 10.0,
    "optimal for uniform, most error": 300.0,
    "planar Laplace": 80.0,
    "Gaussian": 85.0,
    "remapped Laplace": 99.0,
    "optimal for the prior": 100.0,
    "dummies": 500.0,
}
KNOWING = {"remapped Laplace", "optimal for the prior"}


def verdicts(**changed: float) -> tuple[dict[str, str], dict[str, str]]:
    errors = ERRORS | {name.replace("_", " "): error for name, error in changed.items()}
    table = pd.DataFrame({"mechanism": list(errors), "adversary_error": list(errors.values())})
    table["equalised"], table["prior"] = "uniform", "row"
    table["knows_prior"] = table["mechanism"].isin(KNOWING)
    found = check_claims(table)
    return dict(zip(found["claim"], found["verdict"], strict=True)), dict(
        zip(found["claim"], found["detail"], strict=True)
    )


def test_every_claim_gets_a_verdict() -> None:
    found, detail = verdicts()
    assert found == {
        "Laplace > cloaking": "fails",
        "Laplace > optimal for uniform": "depends on which optimum",
        "Laplace best without the prior": "fails",
        "optimal for the prior is best": "holds",
        "Laplace never disclosed": "holds",
    }
    assert set(found) == set(CLAIMS)
    assert detail["Laplace best without the prior"] == "80.0 m against 90.0 m of cloaking"
    assert detail["Laplace > optimal for uniform"] == "80.0 m against 10.0 to 300.0 m"


@pytest.mark.parametrize(
    ("claim", "laplace", "verdict"),
    [
        ("Laplace > cloaking", 91.0, "holds"),
        ("Laplace > cloaking", 90.04, "equal"),
        ("Laplace > optimal for uniform", 301.0, "holds"),
        ("Laplace > optimal for uniform", 9.0, "fails"),
        ("Laplace best without the prior", 91.0, "holds"),
        ("Laplace never disclosed", 0.0, "fails"),
        ("optimal for the prior is best", 101.0, "fails"),
    ],
)
def test_verdicts_follow_the_numbers(claim: str, laplace: float, verdict: str) -> None:
    assert verdicts(planar_Laplace=laplace)[0][claim] == verdict
