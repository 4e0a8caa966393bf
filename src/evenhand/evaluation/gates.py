"""One function that says pass, fail or not shown: behind `--gate`, in tests, and over many commits.

A finding is an interval beside what is allowed. A gate is red only for what is *shown*: the whole
interval lies beyond the limit. It is green only if every interval lies within. All else is "not
shown", which is no verdict about the decisions but one about the evidence.

**Over many commits.** Each look at data may be wrong with its own probability. If look k spends
delta_k = 6 delta / (pi^2 k^2), the sum over all looks that will ever be is delta: a red build
although the truth is within the limit happens with probability at most delta over *all* commits,
however many there will be (Bonferroni). Each look's interval must hold by itself: nobody whom a
look counts may have had a part in choosing what it judges, so a rule that was changed after a look
needs new people. `GateLedger` keeps the account in a file. The same evidence looked at again is the
same event and costs nothing.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from evenhand.errors import InvalidInput
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.findings import Finding
from evenhand.result import Verdict
from evenhand.shares import require_delta, require_least_ratio, require_limit


class Gated(Protocol):
    """A record that a gate can judge."""

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every interval beside what is allowed."""
        ...


def gate(record: Gated, limit: float | None = None, least_ratio: float | None = None) -> Verdict:
    """Judge a record: the one function behind `--gate` and `evenhand.testing.assert_within`.

    Parameters
    ----------
    record : Measurement, Evaluation, ImpactTable or TableCertification
        What was measured.
    limit : float, optional
        The largest gap that is allowed.
    least_ratio : float, optional
        The smallest ratio that is allowed.

    Returns
    -------
    Verdict
        The verdict, its exit code, and what it rests on.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.evaluation import measure
    >>> accepted = np.array([True] * 30 + [False] * 20 + [True] * 12 + [False] * 38)
    >>> gate(measure(accepted, ["a"] * 50 + ["b"] * 50), limit=0.1).exit_code
    1
    """
    # A limit of 5 would let everything pass, also where there is nothing to compare.
    if limit is not None:
        require_limit(limit)
    if least_ratio is not None:
        require_least_ratio(least_ratio)
    findings = record.findings(limit, least_ratio)
    return Verdict(findings, getattr(record, "delta", None))


@dataclass(frozen=True)
class Look:
    """One look at evidence, with the share of delta that it may spend.

    Parameters
    ----------
    commit : str
        What was looked at: a commit, a date.
    evidence : str
        SHA-256 of the evidence and of what was asked of it.
    share : float
        Its share of delta.
    status : str or None
        The verdict; None before it is known.
    """

    commit: str
    evidence: str
    share: float
    status: str | None = None


@dataclass(frozen=True)
class GateLedger:
    """The account of delta over all looks.

    Parameters
    ----------
    delta : float
        A red verdict although the truth is within the limit has probability at most delta over all
        looks together.
    looks : tuple of Look
        The looks so far.

    Examples
    --------
    >>> ledger = GateLedger(0.05)
    >>> ledger, look = ledger.look("3f2a", b"evidence")
    >>> round(look.share, 4)
    0.0304
    >>> ledger, again = ledger.look("3f2a", b"evidence")
    >>> again == look, len(ledger.looks)
    (True, 1)
    """

    delta: float = 0.05
    looks: tuple[Look, ...] = ()

    def __post_init__(self) -> None:
        require_delta(self.delta)

    def look(self, commit: str, evidence: bytes) -> "tuple[GateLedger, Look]":
        """Book the share of a look, before anything is computed.

        Parameters
        ----------
        commit : str
            What is looked at.
        evidence : bytes
            The evidence and what is asked of it. Bytes that were looked at before get the share
            that they had: their verdict is the same event.

        Returns
        -------
        tuple of GateLedger and Look
            The ledger with the booking, and the look.
        """
        digest = hashlib.sha256(evidence).hexdigest()
        for old in self.looks:
            if old.evidence == digest:
                return self, old
        share = inverse_square_share(self.delta, len(self.looks) + 1)
        look = Look(commit, digest, share)
        return replace(self, looks=(*self.looks, look)), look

    def judged(self, look: Look, status: str) -> "GateLedger":
        """The ledger with the verdict of a look.

        Parameters
        ----------
        look : Look
            The look.
        status : str
            Its verdict.

        Returns
        -------
        GateLedger
            A new ledger.
        """
        looks = tuple(
            replace(one, status=status) if one.evidence == look.evidence else one
            for one in self.looks
        )
        return replace(self, looks=looks)

    @classmethod
    def read(cls, path: Path, delta: float) -> "GateLedger":
        """The ledger of a file; a new one if there is no file.

        Parameters
        ----------
        path : Path
            The file.
        delta : float
            The delta that is asked for, which must be that of the file.

        Returns
        -------
        GateLedger
            The ledger.

        Raises
        ------
        InvalidInput
            If the file is no ledger, or has another delta.
        """
        if not path.exists():
            return cls(delta)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            looks = tuple(Look(**one) for one in document["looks"])
            kept = float(document["delta"])
            shares = [float(one.share) for one in looks]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path} is no ledger of a gate ({error}).",
                hint="name a new file, or restore the old one: shares that were spent stay spent.",
            ) from error
        if kept != delta:
            raise InvalidInput(
                f"{path} keeps the account of delta {kept:g}, and delta {delta:g} is asked for.",
                hint=f"use --delta {kept:g}: the guarantee is about all looks together.",
                argument="delta",
            )
        for number, share in enumerate(shares, start=1):
            if share != inverse_square_share(kept, number):
                raise InvalidInput(
                    f"look {number} of {path} has a share of {share:.6g}, and "
                    f"{inverse_square_share(kept, number):.6g} is its due.",
                    hint="two branches that were merged have spent the same share: keep one "
                    "ledger for all of them, as the GitHub Action does, and begin a new one.",
                )
        return cls(kept, looks)

    def write(self, path: Path) -> None:
        """Write the ledger to a file.

        Parameters
        ----------
        path : Path
            The file.
        """
        document = {"delta": self.delta, "looks": [vars(one) for one in self.looks]}
        # A build that is ended in the middle leaves the old account or the new one.
        whole = path.with_name(f".{path.name}.new")
        whole.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        whole.replace(path)
