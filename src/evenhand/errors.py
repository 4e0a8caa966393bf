"""Everything evenhand refuses, as one tree: each message names the thing, its value, the law and the way out.

EvenhandError
├── InvalidInput (also a ValueError)
│   ├── NotFinite            NaN or infinity where a number is needed
│   ├── LengthMismatch       arrays that should describe the same rows do not
│   ├── BadLabel             a label outside {-1, +1}
│   └── MissingColumn        a table lacks a column that was asked for
├── CannotEstimateRate       a group has no row in the rate's denominator
├── Infeasible               no mixture of the class meets the constraints
├── UnsuitableEstimator      a model that cannot be used as a weighted-classification oracle
├── NotSerialisable          a hypothesis whose nature does not allow plain JSON
└── ProtocolError            decide/observe called in an order or with a round that cannot be
"""


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


class CannotEstimateRate(EvenhandError):
    """A rate has an empty denominator in some group, or there is only one group."""


class Infeasible(EvenhandError):
    """No mixture of the class meets the constraints; `certificate` is the smallest violation any mixture reaches."""

    def __init__(self, message: str, *, hint: str | None = None, certificate: float) -> None:
        super().__init__(message, hint=hint)
        self.certificate = certificate


class UnsuitableEstimator(EvenhandError, TypeError):
    """A model that cannot serve as a weighted-classification oracle."""


class NotSerialisable(EvenhandError, TypeError):
    """A hypothesis whose nature does not allow plain JSON."""


class ProtocolError(EvenhandError):
    """decide or observe was called in a way that the protocol of one-sided feedback does not allow."""
