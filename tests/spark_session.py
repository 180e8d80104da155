"""A local Spark for tests, where the machine has Java."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from geoind.keys import VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHER = hashlib.sha256(b"a key in a variable").digest()
"""The key that the executors have in their environment."""


def java_version() -> int:
    if shutil.which("java") is None:
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def require_java() -> None:
    """Skip loudly where there is no Java that Spark can use."""
    if java_version() < 17:
        message = "Java 17 or newer is not on this machine: NOTHING WAS TESTED ON SPARK"
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(message, stacklevel=1)
        pytest.skip(message)


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(events: Path) -> "Iterator[SparkSession]":
    """A local Spark with two task slots that runs a failed task again."""
    require_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        # Many small jobs: optimising their code costs the JVM more than running it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.enabled": "true",
        f"spark.executorEnv.{VARIABLE}": OTHER.hex(),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2, 2]").appName("geoind tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
