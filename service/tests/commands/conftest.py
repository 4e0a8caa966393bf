"""Settings in an empty folder, and the command line there."""

from pathlib import Path

import pytest
from tests.cli.conftest import run, width  # noqa: F401

SERVICE = """[service]
port = 0

[[product]]
name = "loan"
features = ["score"]
class = "thresholds"
limit = 0.1
"""


@pytest.fixture
def service_toml(tmp_path: Path) -> Path:
    path = tmp_path / "service.toml"
    path.write_text(SERVICE, encoding="utf-8")
    return path
