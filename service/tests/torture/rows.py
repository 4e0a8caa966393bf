"""The table: every row in its order. A row is (quick) -> (target, figure, held)."""

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from service.tests.torture.archives import archived_and_killed
from service.tests.torture.bets import bets_before_coins
from service.tests.torture.chaos import chaos
from service.tests.torture.counts import hard_counts
from service.tests.torture.disk import no_disk
from service.tests.torture.edge import (
    and_mutant,
    flood_of_plans,
    floods,
    hostile_bodies_and_mutants,
    impossible_settings,
    openapi,
    silent_connections,
    slow_bodies,
    strange_messages,
)
from service.tests.torture.entry_points import attackers, canaries, fuzz, monsters
from service.tests.torture.forgeries import doctored_packs, exchanged_people
from service.tests.torture.identity import (
    identical_requests,
    interleavings,
    late_retries,
    other_body,
)
from service.tests.torture.integrity import (
    appending_role,
    clocks,
    erased_keys,
    laundering,
    one_plan,
    restored,
    witnessed,
)
from service.tests.torture.kills import fsync_first, kill_nine
from service.tests.torture.million import draws, looking, restart_and_verify
from service.tests.torture.operating import ending_keys, rolled_back_head, starved
from service.tests.torture.policies import (
    damaged_logs,
    flipped_bytes,
    four_trainers,
    service_and_library,
    swaps_under_load,
)
from service.tests.torture.replicas import (
    added_rows,
    drain,
    first_starts,
    frozen_server,
    keys_race,
    moved_marks,
    paused,
    revoked_on_the_way,
    sessions,
    silent_replica,
    switches,
)
from service.tests.torture.replicas import and_mutant as of_three
from service.tests.torture.requests import (
    first_look,
    many_members,
    narrow_scopes,
    one_host,
    one_reading,
    one_spelling,
    public_paths,
)
from service.tests.torture.speed import beside_an_insert, throughput
from service.tests.torture.visits import hidden_people, names_and_files, packs, readiness

Result = tuple[str, str, bool]


@dataclass(frozen=True)
class Row:
    """`alone`: it measures time, so nothing else runs beside it. `leaves`: it also returns a
    folder, for the row that `takes` it. `long`: it takes more than a few seconds at its small size
    too, so the quick tier leaves it to `make torture`.
    """

    name: str
    run: Callable
    alone: bool = False
    leaves: bool = False
    takes: bool = False
    long: bool = False


ROWS = (
    Row("kill -9 of the service under load over HTTP, and at the ledger", kill_nine, long=True),
    Row("fsync before every answer (strace)", fsync_first, long=True),
    Row("100 identical requests at once", identical_requests),
    Row("same key, other body", other_body),
    Row("retry after 1, 400, 2,000 days", late_retries),
    Row("outcome interleavings", interleavings),
    Row("policy swaps under load", swaps_under_load),
    Row("four trainers on PostgreSQL, one paused and resumed", four_trainers, long=True),
    Row("each byte of a policy flipped", flipped_bytes, long=True),
    Row("log edited, deleted, reordered, truncated", damaged_logs),
    Row("fuzzed requests", fuzz),
    Row("10 MB body, depth 10,000, batch of 1e6", monsters, alone=True),
    Row("scope matrix, CSRF, stored XSS, SQL payloads", attackers),
    Row("canary secrets and group values in logs", canaries),
    Row("draws recomputed from the revealed secret", draws, leaves=True),
    Row("disk full, fsync error", no_disk, long=True),
    Row("durable throughput, 64 clients, SQLite FULL", throughput, alone=True),
    Row("CPU per decision beside a plain insert", beside_an_insert, alone=True),
    Row("restart; full verify", restart_and_verify, alone=True, takes=True),
    Row("looking at a large ledger", looking, alone=True, takes=True),
    Row("the first look at a large ledger", first_look, alone=True, takes=True),
    Row("service lifetime against the library", service_and_library),
    Row("hostile bodies without a key", hostile_bodies_and_mutants, alone=True),
    Row("2 MB of members, ten at once", and_mutant(many_members, "uncounted"), alone=True),
    Row("paths that need no key", and_mutant(public_paths, "rendered"), alone=True),
    Row("one spelling of a name", and_mutant(one_spelling, "any spelling")),
    Row("one reading of a body", and_mutant(one_reading, "last wins")),
    Row("hosts and targets of other names", and_mutant(one_host, "any host")),
    Row("scopes of overrides, settlements", and_mutant(narrow_scopes, "one scope")),
    Row("upgrades, trailers, doubled headers", and_mutant(strange_messages, "unproxied")),
    Row("floods around a body without a key", and_mutant(floods, "unproxied")),
    Row("silent connections", and_mutant(silent_connections, "unproxied"), long=True),
    Row("slow bodies of one key", and_mutant(slow_bodies("127.0.0.2"), "unproxied")),
    Row("the same from the address of others", and_mutant(slow_bodies("127.0.0.1"), "unproxied")),
    Row("a flood of plans by a key that may only look", and_mutant(flood_of_plans, "one pool")),
    Row("impossible settings", and_mutant(impossible_settings, "believing"), long=True),
    Row("the OpenAPI document (schemathesis)", and_mutant(openapi, "undocumented"), long=True),
    Row("SIGTERM of one replica of three under load", of_three(drain, "asked once"), long=True),
    Row(
        "seal laundering: an old row flipped, hashes recomputed, one request", laundering, long=True
    ),
    Row(
        "doctored ledgers in packs, by name",
        and_mutant(doctored_packs, "signs anything"),
        long=True,
    ),
    Row("everybody's key and sealed fields exchanged", and_mutant(exchanged_people, "unbound")),
    Row("windows of another length at each start", one_plan),
    Row("a clock 400 days ahead (libfaketime)", clocks, long=True),
    Row("history rewritten with keyring and database, witnesses", witnessed, long=True),
    Row("a dump loaded by hand and by command (PostgreSQL)", restored, long=True),
    Row("a role that can append and nothing else (PostgreSQL)", appending_role, long=True),
    Row(
        "wrapped keys in the pages after an erasure (PostgreSQL)",
        and_mutant(erased_keys, "untidy"),
        long=True,
    ),
    Row("a pack while the service runs", and_mutant(packs, "wide"), long=True),
    Row("live and ready while PostgreSQL is away", and_mutant(readiness, "hopeful"), long=True),
    Row("an erasure that finds nobody", and_mutant(hidden_people, "agreeing")),
    Row("odd keys, and the modes of files", and_mutant(names_and_files, "careless")),
    Row("switches under load, three replicas", of_three(switches, "unaware"), long=True),
    Row(
        "a switch and a revocation hidden in the database", of_three(moved_marks, "told"), long=True
    ),
    Row(
        "a switch added to the database, three replicas", of_three(added_rows, "any row"), long=True
    ),
    Row(
        "a key revoked between its check and its work",
        of_three(revoked_on_the_way, "checked once"),
        long=True,
    ),
    Row(
        "keys made and revoked at once, three replicas", of_three(keys_race, "own keys"), long=True
    ),
    Row("one replica paused in a transaction", of_three(paused, "endless"), long=True),
    Row(
        "one replica of two paused behind nginx",
        of_three(silent_replica, "waits"),
        alone=True,
        long=True,
    ),
    Row("PostgreSQL stands still", of_three(frozen_server, "waiting"), alone=True),
    Row("three first starts on an empty database", of_three(first_starts, "eager"), long=True),
    Row(
        "an older head put back, without a witness",
        and_mutant(rolled_back_head, "unmarked"),
        long=True,
    ),
    Row("keys that end, and their successors", and_mutant(ending_keys, "endless keys"), long=True),
    Row("a replica starved in a transaction", of_three(starved, "hasty server"), long=True),
    Row("people erased by later coins, two epochs in one closing", bets_before_coins, long=True),
    Row(
        "quota and audit budget, 64 clients, one process and three replicas", hard_counts, long=True
    ),
    Row(
        "ended windows into archives, killed in the middle",
        and_mutant(archived_and_killed, "forgetful"),
        long=True,
    ),
    Row("sessions on three replicas", of_three(sessions, "own sessions"), long=True),
    Row("faults under load, three replicas, the recorded history", chaos, long=True),
)


def measured(number, quick, place=None):
    """((target, figure, held), seconds, folder) of a row; a row that cannot be measured does not
    hold.
    """
    row, began, left = ROWS[number], time.monotonic(), None
    # what a row provokes in this process would be logged hundreds of times
    logging.getLogger("evenhand").addHandler(logging.NullHandler())
    try:
        found = row.run(quick, place) if row.takes else row.run(quick)
        if row.leaves:
            found, left = found
    except (pytest.skip.Exception, pytest.fail.Exception) as absent:  # of tests/tools.py
        found = ("(see the table)", str(absent), False)
    except Exception as error:  # noqa: BLE001 - the other rows are to be seen
        traceback.print_exc()
        found = (
            "(see the table)",
            f"could not be measured: {type(error).__name__}: {error}",
            False,
        )
    return found, time.monotonic() - began, left
