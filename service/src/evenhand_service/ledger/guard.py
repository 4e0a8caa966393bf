"""What must hold before the chain is extended: its end was sealed by the keyring, it has not gone
back to an earlier state, and time has not jumped ahead.

    seal of the head = HMAC(keyring, head)     else somebody wrote the database without the keyring
    seq >= the last seq that was seen here     else an older state of the database was put back
    time of day - time since boot <= its first value + 60 s     else a clock was moved

Moving a ledger's time ahead cannot be undone, and waiting can, so a clock that is doubtful is
refused. Where the database has a clock (PostgreSQL), that one counts, and the host's is compared
with it. A long quiet time is no jump, because the time since boot goes on with it.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand_service.ledger.keyring import Keyring
from evenhand_service.ledger.refusals import ClockJumped, Tampered

LOG = logging.getLogger("evenhand_service.ledger")
Clock = Callable[[], float]
MOST_JUMP = 60.0
"""Seconds by which a clock may run ahead of the others."""
_MARK_SIZE = 512


def since_boot() -> float:
    """Seconds since this machine was booted, suspensions included; no setting of the time of day
    changes it.
    """
    try:
        with open("/proc/uptime", "rb") as file:
            return float(file.read(64).split()[0])
    except (OSError, ValueError):  # no Linux
        return time.monotonic()


def boot_id() -> str:
    """The name of this boot of this machine; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class SystemClock:
    """The time of day, believed only as far as other clocks bear it out.

    On PostgreSQL a transaction is dated by the database's clock. A reading is refused when it is
    more than a minute ahead of what the time since boot allows, of this machine's clock (for the
    database's), or of an outside clock that was given (`corroborate`).

    Parameters
    ----------
    wall : callable
        The time of day of this machine, in seconds.
    elapsed : callable
        A time that only goes forward, at the same speed: the seconds since boot.

    Examples
    --------
    >>> wall = [1000.0]
    >>> clock = SystemClock(wall=lambda: wall[0], elapsed=lambda: 5.0)
    >>> clock.read(None)
    1000.0
    >>> wall[0] += 400 * 86400.0
    >>> clock.read(None)
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.ClockJumped: the clock of this machine is 34560000 s ...
    """

    def __init__(self, wall: Clock = time.time, elapsed: Clock = since_boot) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self.offset: float | None = None
        """Time of day less time since boot, when it was first read."""
        self._outside: float | None = None
        self._alarmed = False

    def __call__(self) -> float:
        """Return the time.

        Returns
        -------
        float
            Seconds since the epoch: by the first reading and the time since boot, once there is
            one, so that a clock that is moved under way moves nothing.
        """
        return self._wall() if self.offset is None else self.offset + self._elapsed()

    def read(self, database: float | None) -> float:
        """Date a transaction.

        Parameters
        ----------
        database : float or None
            What the database's clock says, if it has one.

        Returns
        -------
        float
            Seconds since the epoch.

        Raises
        ------
        ClockJumped
            If a clock is more than a minute ahead of the others.
        """
        elapsed = self._elapsed()
        host = self._wall()
        now, name = (host, "this machine") if database is None else (database, "the database")
        if database is not None:
            wrong = abs(host - database) > MOST_JUMP
            if wrong and not self._alarmed:
                LOG.error(
                    "the clock of this machine differs from the database's by %.0f s; "
                    "the database's counts",
                    host - database,
                )
            self._alarmed = wrong
            _refuse(now - host, name, "that of this machine")
        if self._outside is not None:
            _refuse(now - (self._outside + elapsed), name, "that of a witness")
        if self.offset is None:
            self.offset = now - elapsed
        _refuse(now - elapsed - self.offset, name, "the time that has passed")
        return now

    def corroborate(self, outside: float) -> None:
        """Take the time of an outside clock (of a witness): no row may be dated later.

        Parameters
        ----------
        outside : float
            What it says now, in seconds since the epoch.
        """
        self._outside = outside - self._elapsed()

    def restart(self) -> None:
        """Believe the clock as it stands now; an operator has looked at it."""
        self.offset = None


def _refuse(ahead: float, name: str, what: str) -> None:
    if ahead > MOST_JUMP:
        raise ClockJumped(
            f"the clock of {name} is {ahead:.0f} s ahead of {what}; "
            f"more than {MOST_JUMP:.0f} s would date the ledger wrongly for good, "
            "so nothing is written.",
            hint="set the clock right; if it is right, evenhand audit confirm-clock.",
        )


class LockedHead(NamedTuple):
    """The end of the chain as a transaction finds it, and the time by the database's clock."""

    seq: int
    hash: bytes
    at: float
    seal: bytes
    database: float | None


class Checked(NamedTuple):
    """A state of the ledger that was checked: its last row, the hash of it, and the digest of the
    events and policies up to it.
    """

    seq: int = 0
    hash: bytes = bytes(32)
    control: bytes = bytes(32)


class Mark:
    """A file, beside the keyring, that remembers how far the chain of a ledger went and how the
    clock stood: an older state of the database in its place is seen, and a clock that was moved
    between two starts. It is written after the commit and may lag behind; it is never ahead. Where
    it cannot be written, the log says so once, and the ledger goes on without it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._boot = boot_id()
        self._given_up = False
        self.ledger = ""
        """The id of the ledger that it is about."""

    def load(self) -> Json:
        """What was remembered; empty if there is no such file, or it is none of ours."""
        try:
            found = json.loads(self._path.read_bytes())
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def clock_offset(self) -> float | None:
        """Time of day less time since boot as it was in this boot, or None."""
        found = self.load()
        same = self._boot and found.get("boot") == self._boot
        return float(found["offset"]) if same and found.get("offset") is not None else None

    def save(self, seq: int, digest: bytes, offset: float | None) -> None:
        """Remember; nobody waits for the disk."""
        if self._given_up:
            return
        known = {"seq": seq, "hash": digest.hex(), "ledger": self.ledger}
        document = {**known, "boot": self._boot, "offset": offset}
        try:
            if self._handle is None:
                self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._handle, canonical(document).encode().ljust(_MARK_SIZE), 0)
        except OSError as error:
            self._given_up = True
            LOG.error("the mark %s is not written any more: %s", self._path, error.strerror)

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def tampered(what: str) -> Tampered:
    """The refusal to go on with a database that somebody without the keyring has changed."""
    return Tampered(
        f"{what}: the database was changed by somebody without the keyring; nothing is appended.",
        hint="find out what was changed (evenhand audit verify --deep), then restore.",
    )


def gone_back(seq: int, seen: int) -> Tampered:
    """The refusal to extend a chain that lacks a row that was seen."""
    return Tampered(
        f"the chain ends at row {seq}, and row {seen}, which had been written, is not in it: "
        "an older state of the database was put in its place; nothing is appended.",
        hint="start again, and confirm the gap (evenhand audit confirm-gap).",
    )


class HeadGuard:
    """Looks at the end of the chain before every transaction."""

    def __init__(self, keyring: Keyring, clock: Clock, mark: Mark | None = None) -> None:
        self.keyring = keyring
        self.clock = clock
        self.mark = mark
        self._seq = 0
        self._hash = bytes(32)
        self._basis = (0, 0)
        self.connection: object = None
        """The connection of the last transaction."""
        self.checked = Checked()
        """The newest state whose events and policies were found as the keyring sealed them."""
        if mark is not None and isinstance(clock, SystemClock) and clock.offset is None:
            clock.offset = mark.clock_offset()

    def admit(self, head: LockedHead) -> float:
        """The time by which the transaction is dated; Tampered or ClockJumped if nothing may be
        appended to this head.
        """
        self.require_seal(head.seq, head.hash, head.seal)
        back = head.seq < self._seq
        if back or (head.seq == self._seq and head.seq and head.hash != self._hash):
            raise gone_back(head.seq, self._seq)
        self._seq = head.seq
        self._hash = head.hash
        return self.date(head.database)

    def date(self, database: float | None) -> float:
        """The time by which a transaction would be dated now; ClockJumped if none may be.

        database: what its clock says, if it has one.
        """
        if isinstance(self.clock, SystemClock):
            return self.clock.read(database)
        return self.clock()

    @property
    def seen(self) -> int:
        """The newest row that was seen here."""
        return self._seq

    @property
    def newest(self) -> tuple[int, bytes]:
        """The newest row that was seen here, and its hash."""
        return self._seq, self._hash

    def require_end(self, seq: int, digest: bytes, seal: bytes, *, at_least: int) -> None:
        """Tampered unless the keyring sealed this end of the chain, and it has not gone back behind
        a row that was seen: what is signed is believed elsewhere.
        """
        if not seq:
            raise tampered("the chain has no end")
        self.require_seal(seq, digest, seal)
        if seq < at_least:
            raise tampered(f"the chain ends at row {seq}, but row {at_least} had been written")

    def require_seal(self, seq: int, digest: bytes, seal: bytes) -> None:
        """Tampered if the keyring did not seal this end of the chain."""
        if seq and not self.keyring.sealed_head(seq, digest, seal):
            raise Tampered(
                f"the seal of row {seq}, the end of the chain, is not the keyring's: "
                "a newer root was taken up that this process does not hold, or the database was "
                "changed by somebody without the keyring; nothing is appended.",
                hint="if the root was rotated, give the new keyring to this replica and restart "
                "it; else find out what was changed (evenhand audit verify --deep), then restore.",
            )

    def remember(self, checked: Checked) -> None:
        """This state was checked: the next look begins there."""
        if checked.seq >= self.checked.seq:
            self.checked = checked

    def admit_basis(self, basis: tuple[int, int]) -> tuple[int, int]:
        """Tampered if a row was seen here that changed what decides or who may ask, and
        is gone.
        """
        if any(now < seen for now, seen in zip(basis, self._basis, strict=True)):
            row = max(self._basis)
            raise tampered(f"row {row} had changed what decides or who may ask, and is gone")
        self._basis = basis
        return basis

    def committed(
        self, seq: int, digest: bytes, basis: tuple[int, int], control: bytes = bytes(32)
    ) -> None:
        """The chain has been extended up to this row."""
        self._seq = seq
        self._hash = digest
        self._basis = basis
        self.remember(Checked(seq, digest, control))
        if self.mark is not None:
            offset = self.clock.offset if isinstance(self.clock, SystemClock) else None
            self.mark.save(seq, digest, offset)
