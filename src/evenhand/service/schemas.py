"""What the API takes: strict schemas, so that anything else is refused before it comes near the
ledger.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MOST = 1000
"""Items in a batch."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable text")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Note = Annotated[str, Field(max_length=2000), AfterValidator(_printable)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]


def _no_huge_integer(value: object) -> object:
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError("whole numbers must be exact in a double: at most 2**53")
    return value


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be -1 (bad outcome) or 1 (good outcome)")
    return value


Group = Annotated[Name | bool | Whole | Number, BeforeValidator(_no_huge_integer)]
Label = Annotated[Literal[-1, 1], BeforeValidator(_no_truth_value)]


class Body(BaseModel):
    """Unknown fields are refused; nothing is guessed from a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PricesBody(Body):
    """What a false accept and a false reject of this person cost."""

    false_accept: Annotated[Number, Field(ge=0)]
    false_reject: Annotated[Number, Field(ge=0)]


class Asked(Body):
    """One application.

    `key` is yours, unique per application: the same key always gets the same answer.
    """

    key: Name
    person: Name
    product: Name
    features: (
        Annotated[list[Number], Field(min_length=1, max_length=1000)]
        | Annotated[dict[Name, Number], Field(min_length=1, max_length=1000)]
    )
    group: Group | None = None
    prices: PricesBody | None = None


class AskedMany(Body):
    """Up to 1,000 applications, answered in order; a refused one does not stop the others."""

    decisions: Annotated[list[Asked], Field(min_length=1, max_length=MOST)]


class Told(Body):
    """The outcome of an accepted person: +1 good, -1 bad."""

    key: Name
    label: Label


class ToldMany(Body):
    """Up to 1,000 outcomes."""

    outcomes: Annotated[list[Told], Field(min_length=1, max_length=MOST)]


class OverrideTold(Body):
    """A human decided, whatever the machine had drawn; the certificate keeps the decision as it was
    drawn.
    """

    key: Name
    accept: bool
    by: Name
    note: Note = ""


class SettlementTold(Body):
    """Which of two disputed labels holds."""

    key: Name
    label: Label
    by: Name
    note: Note = ""


class GroupBody(Body):
    """A group that became known after the decision, for accepted and rejected people alike."""

    key: Name
    group: Group


class Operation(Body):
    """Who does it, and why; `policy` for a rollback, `constant` for the kill switch."""

    product: Name
    by: Name
    note: Note = ""
    policy: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    constant: Literal["accept", "reject"] | None = None


class Erasure(Body):
    """Whom to forget."""

    person: Name
    by: Name


class Confirmation(Body):
    """Who looked, and what was checked."""

    by: Name
    note: Annotated[Note, Field(min_length=1)]


class NewKey(Body):
    """A key for your own tenant."""

    scopes: Annotated[
        list[Literal["decide", "observe", "audit", "admin"]], Field(min_length=1, max_length=4)
    ]
    name: Annotated[str, Field(max_length=100), AfterValidator(_printable)] = ""


class LaunchQuestion(Body):
    """What is known about the people who will come."""

    product: Name
    group_shares: Annotated[dict[Name, Number], Field(min_length=2, max_length=10)]
    bad_rates: Annotated[dict[Name, Number], Field(min_length=2, max_length=10)]
    auc: Annotated[Number, Field(gt=0.5, lt=1)]
    horizon: Annotated[int, Field(ge=1000, le=200_000)]
