"""The quick tier holds on any machine: hypothesis and Dask give up after no time that a slow
machine could need.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Read when Dask is imported, here and in its workers.
os.environ |= {f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name}": "300s" for name in ("CONNECT", "TCP")}
os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "None"
