"""Everything evenhand refuses, as one tree: each message names the thing, its value, the law and
the way out.

EvenhandError
├── InvalidInput (also a ValueError)
│   ├── NotFinite            NaN or infinity where a number is needed
│   ├── LengthMismatch       arrays that should describe the same rows do not
│   ├── BadLabel             a label outside {-1, +1}
│   ├── MissingColumn        a table lacks a column that was asked for
│   └── StorageError         a file that is no stored learner, is damaged, or of another version
├── CannotEstimateRate       a group has no row in the rate's denominator
├── Infeasible               no mixture of the class meets the constraints
├── UnsuitableEstimator      a model that cannot be used as a weighted-classification oracle
├── NotSerialisable          a hypothesis whose nature does not allow plain JSON
├── CannotCertify            too few people to certify anything but a constant; says who is missing and how many
├── DeltaOverspent           a process asks for more failure probability than is left
└── ProtocolError            decide/observe called in an order or with a round that cannot be
"""

import math


class EvenhandError(Exception):
    """Root of the tree; `hint` is the way out and is printed after the message."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} Hint: {hint}")
        self.hint = hint


class InvalidInput(EvenhandError, ValueError):
    """An argument that breaks the law of its parameter."""


class NotFinite(InvalidInput):
    """NaN or infinity where a finite number is needed."""


class LengthMismatch(InvalidInput):
    """Arrays that should have one entry per row have different lengths."""


class BadLabel(InvalidInput):
    """A label outside {-1, +1}."""


class MissingColumn(InvalidInput):
    """A table lacks a column that was asked for."""


class StorageError(InvalidInput):
    """A file that is no stored learner, is damaged, or was written in another version of the
    format.
    """


class CannotEstimateRate(EvenhandError):
    """A rate has an empty denominator in some group, or there is only one group."""


class Infeasible(EvenhandError):
    """No mixture of the class meets the constraints; `certificate` is the smallest violation any
    mixture reaches.
    """

    def __init__(self, message: str, *, hint: str | None = None, certificate: float) -> None:
        super().__init__(message, hint=hint)
        self.certificate = certificate


class UnsuitableEstimator(EvenhandError, TypeError):
    """A model that cannot serve as a weighted-classification oracle."""


class NotSerialisable(EvenhandError, TypeError):
    """A hypothesis whose nature does not allow plain JSON."""


class ProtocolError(EvenhandError):
    """decide or observe was called in a way that the protocol of one-sided feedback does not allow."""


class CannotCertify(EvenhandError):
    """A count is too small for a certificate: `have` of `needed` people of `group` in the rate's
    denominator.

    `people` is how many people were seen in all, so the observed share have/people turns `missing`
    into `more_people`, the expected number of further people. When none was seen the share is not
    taken to be 0: three in `people` is its upper limit (95%), and `more_people` is then a lower
    limit.
    """

    def __init__(
        self,
        *,
        group: object,
        denominator: str,
        have: int,
        needed: float,
        people: int,
        hint: str | None = None,
    ) -> None:
        self.group, self.denominator, self.have, self.needed, self.people = (
            group,
            denominator,
            have,
            needed,
            people,
        )
        self.missing = max(needed - have, 0.0)
        share = max(have, 3) / max(people, 3)
        self.more_people = self.missing / min(share, 1.0)
        super().__init__(
            f"group {group!r} has {have:,} {denominator} among {people:,} people, but {_count(needed)} are needed: "
            f"{_count(self.missing)} more, expected {'after' if have else 'after at least'} "
            f"{_count(self.more_people)} more people{'' if have else ' (none was seen so far)'}.",
            hint=hint
            or "keep auditing, widen the limit, or use a smaller class; until then only constants are deployed.",
        )


class DeltaOverspent(EvenhandError):
    """The delta ledger would exceed the failure probability that was promised."""


def _count(number: float) -> str:
    """A number of people in words: rounded up, "infinitely many" where no number is enough."""
    return f"{math.ceil(number):,}" if math.isfinite(number) else "infinitely many"
