"""The quick tier holds on any machine: hypothesis and Dask give up after no time that a slow
machine could need.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Read when Dask is imported, here and in its workers.
os.environ |= {f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name}": "300s" for name in ("CONNECT", "TCP")}
os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "None"


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """A service that a test runs in this process logs JSON and tells nobody else; the next test's
    caplog would hear nothing."""
    loggers = [logging.getLogger(name) for name in ("evenhand", "evenhand_service", "uvicorn")]
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
