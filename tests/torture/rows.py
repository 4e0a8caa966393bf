"""The table: every row in its order. A row is (quick) -> (target, figure, held)."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from tests.torture.disk import no_disk
from tests.torture.doors import attackers, canaries, fuzz, monsters
from tests.torture.identity import identical_requests, interleavings, late_retries, other_body
from tests.torture.kills import fsync_first, kill_nine
from tests.torture.million import draws, restart_and_verify
from tests.torture.policies import (
    damaged_logs,
    flipped_bytes,
    four_trainers,
    service_and_library,
    swaps_under_load,
)
from tests.torture.speed import throughput

Result = tuple[str, str, bool]


@dataclass(frozen=True)
class Row:
    """`alone`: it measures time, so nothing else runs beside it. `leaves`: it also returns a
    folder, for the row that `takes` it.
    """

    name: str
    run: Callable
    alone: bool = False
    leaves: bool = False
    takes: bool = False


ROWS = (
    Row("kill -9 of the service under load over HTTP, and at the ledger", kill_nine),
    Row("fsync before every answer (strace)", fsync_first),
    Row("100 identical requests at once", identical_requests),
    Row("same key, other body", other_body),
    Row("retry after 1, 400, 2,000 days", late_retries),
    Row("outcome interleavings", interleavings),
    Row("policy swaps under load", swaps_under_load),
    Row("four trainers on PostgreSQL, one paused and resumed", four_trainers),
    Row("each byte of a policy flipped", flipped_bytes),
    Row("log edited, deleted, reordered, truncated", damaged_logs),
    Row("fuzzed requests", fuzz),
    Row("10 MB body, depth 10,000, batch of 1e6", monsters, alone=True),
    Row("scope matrix, cross-tenant, CSRF, stored XSS, SQL payloads", attackers),
    Row("canary secrets and group values in logs", canaries),
    Row("draws recomputed from the revealed secret", draws, leaves=True),
    Row("disk full, fsync error", no_disk),
    Row("durable throughput, 64 clients, SQLite FULL", throughput, alone=True),
    Row("restart; full verify", restart_and_verify, alone=True, takes=True),
    Row("service lifetime against the library", service_and_library),
)


def measured(number, quick, place=None):
    """((target, figure, held), seconds, folder) of a row; a row that cannot be measured does not
    hold.
    """
    row, began, left = ROWS[number], time.monotonic(), None
    try:
        found = row.run(quick, place) if row.takes else row.run(quick)
        if row.leaves:
            found, left = found
    except Exception as error:  # noqa: BLE001 - the other rows are to be seen
        traceback.print_exc()
        found = (
            "(see the table)",
            f"could not be measured: {type(error).__name__}: {error}",
            False,
        )
    return found, time.monotonic() - began, left
