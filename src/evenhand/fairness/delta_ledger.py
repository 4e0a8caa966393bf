"""The delta ledger (design 3.5): who may be wrong, with which probability, booked once and never
again.

An entry is a *process*: a family of tests that fails with probability at most its share over its
whole run. Shares add up (union bound), so while their sum is at most delta, all processes
together fail with probability at most delta. A process that has started cannot be started again:
re-training until something passes would need a new booking each time, and the ledger runs dry.

    betting                         one booking, for all rounds
    the N-th nominated hypothesis   6 delta_r / (pi^2 N^2)
    look k at preset audit counts   6 delta_r / (pi^2 k^2)
    run r (restart r - 1)           delta_r = 6 delta / (pi^2 r^2)
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Self

from evenhand.contracts import Json
from evenhand.errors import DeltaOverspent, InvalidInput, ProtocolError
from evenhand.shares import require_delta, require_share

ROUNDING = 1e-12
"""Relative slack for sums of floating-point shares."""

FIRST_OF_INVERSE_SQUARES = 6 / math.pi**2


def inverse_square_share(total: float, number: int) -> float:
    """The shares of an endless list that sum to `total`: 6 total / (pi^2 number^2).

    Parameters
    ----------
    total : float
        What is shared.
    number : int
        The number 1, 2, ... of the share.

    Returns
    -------
    float
        The share.

    Examples
    --------
    >>> round(inverse_square_share(0.05, 1), 5)
    0.0304
    >>> round(sum(inverse_square_share(0.05, n) for n in range(1, 100_000)), 5)
    0.05
    """
    if number < 1:
        raise InvalidInput(f"the {number}-th share was asked for; shares are numbered 1, 2, ...")
    return FIRST_OF_INVERSE_SQUARES * total / number**2


def run_share(total: float, run: int, *, reserve: float = 1 - FIRST_OF_INVERSE_SQUARES) -> float:
    """The share delta_r of the r-th run of a certificate, which begins after a suspension.

    Parameters
    ----------
    total : float
        delta.
    run : int
        The number r = 1, 2, ... of the run.
    reserve : float, optional
        The part of delta that is kept for the runs after the first, which share it in proportion to
        1/r^2. The default gives the plain 6 total / (pi^2 r^2); a smaller one is as valid and gives
        the first run more.

    Returns
    -------
    float
        The share; all shares sum to `total`.

    Examples
    --------
    >>> round(run_share(0.05, 1), 5), round(run_share(0.05, 2), 5)
    (0.0304, 0.0076)
    >>> round(run_share(0.05, 1, reserve=0.1), 5)
    0.045
    """
    require_share("reserve", reserve, "(0, 1)")
    if run < 1:
        raise InvalidInput(f"run is {run}; runs are numbered 1, 2, ...")
    if run == 1:
        return (1 - reserve) * total
    return reserve * total / (run**2 * (math.pi**2 / 6 - 1))


@dataclass(frozen=True)
class Booking:
    """One process in the ledger.

    Parameters
    ----------
    process : str
        What is tested, by which bound.
    share : float
        Its share of delta.
    at : int
        The round at which it started.
    run : int, default 1
        The run of certification to which it belongs.

    Examples
    --------
    >>> Booking("betting over 204 hypotheses", 0.03, at=0).run
    1
    """

    process: str
    share: float
    at: int
    run: int = 1

    def __post_init__(self) -> None:
        if not self.process:
            raise InvalidInput(
                "a booking has an empty process name.", hint="name what is tested, by which bound."
            )
        require_share(f"share of process {self.process!r}", self.share, "(0, 1)")

    def to_json(self) -> Json:
        """The booking as plain JSON.

        Returns
        -------
        dict
            `Booking(**value)` is the same booking.
        """
        return asdict(self)


@dataclass(frozen=True)
class DeltaLedger:
    """delta and what has been booked of it.

    Parameters
    ----------
    delta : float
        delta.
    entries : tuple of Booking, optional
        What has been booked.

    Raises
    ------
    DeltaOverspent
        If the shares sum to more than delta.

    Examples
    --------
    >>> ledger = DeltaLedger(0.05).book("betting over 204 hypotheses", 0.03, at=0)
    >>> round(ledger.spent, 3), round(ledger.left, 3)
    (0.03, 0.02)
    >>> ledger.book("betting over 204 hypotheses", 0.01, at=500)
    Traceback (most recent call last):
        ...
    evenhand.errors.ProtocolError: process 'betting over 204 hypotheses' was booked at round 0 ...
    """

    delta: float
    entries: tuple[Booking, ...] = ()

    def __post_init__(self) -> None:
        require_delta(self.delta)
        names = [(entry.run, entry.process) for entry in self.entries]
        if len(set(names)) < len(names):
            raise InvalidInput("a process occurs twice in the ledger; each is booked once.")
        if self.spent > self.delta * (1 + ROUNDING):
            raise DeltaOverspent(
                f"the ledger holds {self.spent:.6g}, more than delta = {self.delta:.6g}."
            )

    @property
    def spent(self) -> float:
        """The sum of all shares booked, never more than delta."""
        total = math.fsum(entry.share for entry in self.entries)
        delta = self.delta
        return delta if delta < total <= delta * (1 + ROUNDING) else total

    @property
    def left(self) -> float:
        """What may still be booked."""
        return self.delta - self.spent

    def book(self, process: str, share: float, *, at: int, run: int = 1) -> Self:
        """The ledger with one more process.

        Parameters
        ----------
        process : str
            Its name; each process is booked once in a run.
        share : float
            Its share of delta.
        at : int
            The round at which it starts.
        run : int, default 1
            The run of certification to which it belongs.

        Returns
        -------
        DeltaLedger
            A new ledger.

        Raises
        ------
        ProtocolError
            If the process was booked before.
        DeltaOverspent
            If less than the share is left.
        """
        for entry in self.entries:
            if (entry.run, entry.process) == (run, process):
                raise ProtocolError(
                    f"process {process!r} was booked at round {entry.at} and cannot start again.",
                    hint="a process keeps its one share for the whole run; a restart after "
                    "a suspension is another process.",
                )
        booking = Booking(process, share, at, run)
        if self.spent + share > self.delta * (1 + ROUNDING):
            raise DeltaOverspent(
                f"process {process!r} asks for {share:.6g}, but {self.spent:.6g} of delta = "
                f"{self.delta:.6g} is "
                f"booked and only {self.left:.6g} is left.",
                hint="use a schedule whose shares sum to delta, such as inverse_square_share or "
                "run_share.",
            )
        return replace(self, entries=(*self.entries, booking))

    def describe(self) -> str:
        """The ledger in words.

        Returns
        -------
        str
            One line per process, then the sum.
        """
        lines = [
            f"{entry.share:.6g} from round {entry.at}, run {entry.run}: {entry.process}"
            for entry in self.entries
        ]
        return "\n".join([*lines, f"{self.spent:.6g} of {self.delta:.6g} booked"])

    def to_json(self) -> Json:
        """The ledger as plain JSON.

        Returns
        -------
        dict
            `from_json` reads it back, bit for bit.
        """
        return {
            "delta": self.delta,
            "entries": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read what `to_json` wrote; the requirements are checked again.

        Parameters
        ----------
        value : dict
            The JSON.

        Returns
        -------
        DeltaLedger
            The ledger.
        """
        return cls(
            float(value["delta"]),
            tuple(Booking(**entry) for entry in value["entries"]),
        )
