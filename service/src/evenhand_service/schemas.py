"""What the API takes: strict schemas, so that anything else is refused before it comes near the
ledger.
"""

from typing import Annotated, ClassVar, Literal
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from evenhand_service.ledger.decision_draw import NAMED, PRINTABLE, is_name, is_printable

MOST = 1000
"""Items in a batch."""
MOST_MEMBERS = 20_000
"""Members of a batch: 1,000 people with all fields and 12 features by name. Who has more features
sends them as a list, which has none, or smaller batches.
"""


def _printable(text: str) -> str:
    if not is_printable(text):
        raise ValueError("must be printable text")
    return text


def _named(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be printable text in NFC, without blanks around it")
    return text


_PRINTED = Field(json_schema_extra={"pattern": PRINTABLE})
Name = Annotated[
    str,
    Field(min_length=1, max_length=200),
    Field(json_schema_extra={"pattern": NAMED}),
    AfterValidator(_named),
]
Note = Annotated[str, Field(max_length=2000), _PRINTED, AfterValidator(_printable)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]


def _no_huge_number(value: object) -> object:
    if isinstance(value, int | float) and abs(value) > 2**53:
        raise ValueError("numbers must be exact in a double: at most 2**53")
    return value


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be -1 (bad outcome) or 1 (good outcome)")
    return value


Group = Annotated[
    Name | bool | Whole | Number,
    BeforeValidator(_no_huge_number),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 200, "pattern": NAMED},
                {"type": "boolean"},
                {"type": "number", "minimum": -(2**53), "maximum": 2**53},
            ]
        }
    ),
]
Label = Annotated[Literal[-1, 1], BeforeValidator(_no_truth_value)]
PathText = Annotated[str, AfterValidator(unquote)]
"""A part of a path; the guard leaves "/" and "%" in it encoded, so that it stays one part."""
ProductName = Annotated[str, Field(max_length=200)]


NumbersByGroup = Annotated[
    dict[Name, Number],
    Field(min_length=2, max_length=10),
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 200, "pattern": NAMED},
            "additionalProperties": {"type": "number", "minimum": -1e300, "maximum": 1e300},
            "minProperties": 2,
            "maxProperties": 10,
        }
    ),
]


LONGEST_TEXT = 10_000
"""Characters of a text among the features; the schema of a product may allow less."""


_NUMBERS = frozenset({int, float})


def _features(given: object) -> object:
    """Numbers, truth values, texts and nulls; a refusal names the feature."""
    if isinstance(given, dict):
        for name in given:
            if not 1 <= len(name) <= 200 or not is_printable(name):
                raise ValueError("a feature's name must be printable text of 1 to 200 characters")
    elif not isinstance(given, list):
        raise ValueError("must be a list of values, or an object of values by name")
    if not 1 <= len(given) <= 1000:
        raise ValueError("must hold 1 to 1,000 values")
    for place, value in given.items() if isinstance(given, dict) else enumerate(given):
        wrong = _wrong_with(value)
        if wrong is not None:
            named = isinstance(place, str)
            which = f"feature {place!r}" if named else f"number {place + 1} of features"
            raise ValueError(f"{which} {wrong}")
    return given


def _wrong_with(value: object) -> str | None:
    """Which requirement the value of a feature breaks."""
    if type(value) in _NUMBERS:
        sound = -1e300 <= value <= 1e300  # type: ignore[operator]  # so NaN is refused too
        return None if sound else "must be a finite number between -1e300 and 1e300"
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"has {len(value)} characters: at most {LONGEST_TEXT}"
        return None
    if value is None or isinstance(value, bool):
        return None
    return "must be a number, true, false, a text or null"


_VALUE = {
    "anyOf": [
        {"type": "number", "minimum": -1e300, "maximum": 1e300},
        {"type": "boolean"},
        {"type": "string", "maxLength": LONGEST_TEXT},
        {"type": "null"},
    ]
}
Features = Annotated[
    list[float | bool | str | None] | dict[str, float | bool | str | None],
    PlainValidator(_features),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _VALUE, "minItems": 1, "maxItems": 1000},
                {
                    "type": "object",
                    "propertyNames": {"minLength": 1, "maxLength": 200, "pattern": PRINTABLE},
                    "additionalProperties": _VALUE,
                    "minProperties": 1,
                    "maxProperties": 1000,
                },
            ]
        }
    ),
]
"""In the order of the product's features, or by name; what each may hold, the product says."""


class Body(BaseModel):
    """Unknown fields are refused; nothing is guessed from a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    most_members: ClassVar[int] = 100
    """Members that the text of such a body may have, those of inner objects among them."""

    @property
    def members(self) -> int:
        """How many members its text has, if it names none twice."""
        inner = (getattr(self, name) for name in self.model_fields_set)
        return len(self.model_fields_set) + sum(
            len(value) for value in inner if isinstance(value, dict)
        )


class PricesBody(Body):
    """What a false accept and a false reject of this person cost."""

    false_accept: Annotated[Number, Field(ge=0)]
    false_reject: Annotated[Number, Field(ge=0)]


class DecisionRequest(Body):
    """One application.

    `key` is yours, unique per application: the same key always gets the same answer.
    """

    most_members: ClassVar[int] = 1100
    key: Name
    person: Name
    product: Name
    features: Features
    group: Group | None = None
    prices: PricesBody | None = None

    @property
    def members(self) -> int:
        """As of every body."""
        named = len(self.features) if isinstance(self.features, dict) else 0
        return len(self.model_fields_set) + named + (0 if self.prices is None else 2)


class DecisionResponse(BaseModel):
    """The answer; `act` is false in shadow mode, where your own decision stands."""

    accept: bool
    act: bool
    at: float
    audit: bool
    epoch: int
    key: str
    mode: Literal["live", "shadow", "killed"]
    policy: str
    propensity: float
    row: int
    window: str


class ProblemDocument(BaseModel):
    """Why something was refused (RFC 9457), with the field, its requirement and the way out."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None
    field: str | None = None
    requirement: str | None = None


class DecisionBatchResponse(BaseModel):
    """Answers and problems, in the order of the request."""

    decisions: list[DecisionResponse | ProblemDocument]


class DecisionBatch(Body):
    """Up to 1,000 applications, answered in order; a refused one does not stop the others."""

    most_members: ClassVar[int] = MOST_MEMBERS
    # the first that is wrong is described, and those after it are not looked at
    decisions: Annotated[list[DecisionRequest], Field(min_length=1, max_length=MOST), FailFast()]

    @property
    def members(self) -> int:
        """As of every body."""
        return 1 + sum([one.members for one in self.decisions])


class OutcomeReport(Body):
    """The outcome of an accepted person: +1 good, -1 bad."""

    key: Name
    label: Label


class OutcomeBatch(Body):
    """Up to 1,000 outcomes."""

    most_members: ClassVar[int] = MOST_MEMBERS
    outcomes: Annotated[list[OutcomeReport], Field(min_length=1, max_length=MOST), FailFast()]

    @property
    def members(self) -> int:
        """As of every body."""
        return 1 + 2 * len(self.outcomes)


class Signed(Body):
    """What is recorded under the name of the key. `by` names somebody beside it, and goes into the
    note.
    """

    by: Name | None = None
    note: Note = ""


class OverrideReport(Signed):
    """A human decided, whatever the machine had drawn; the certificate keeps the decision as it was
    drawn.
    """

    key: Name
    accept: bool


class SettlementReport(Signed):
    """Which of two disputed labels holds."""

    key: Name
    label: Label


class GroupBody(Body):
    """A group that became known after the decision, for accepted and rejected people alike."""

    key: Name
    group: Group


class Operation(Signed):
    """Who does it, and why; `policy` for a rollback, `constant` for the kill switch."""

    product: Name
    policy: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    constant: Literal["accept", "reject"] | None = None


class Erasure(Signed):
    """Whom to forget."""

    person: Name


class Confirmation(Signed):
    """Who looked, and what was checked."""

    note: Annotated[Note, Field(min_length=1)]


class NewKey(Body):
    """A new key."""

    scopes: Annotated[
        list[Literal["decide", "observe", "override", "audit", "admin"]],
        Field(min_length=1, max_length=5),
    ]
    name: Annotated[str, Field(max_length=100), _PRINTED, AfterValidator(_printable)] = ""
    days: Annotated[float, Field(ge=1 / 24, le=3650, allow_inf_nan=False)] = 90.0


class KeyRotation(Body):
    """The successor of a key, and how long the old one goes on."""

    days: Annotated[float, Field(ge=1 / 24, le=3650, allow_inf_nan=False)] = 90.0
    overlap_days: Annotated[float, Field(ge=0, le=3650, allow_inf_nan=False)] = 7.0


class LaunchQuestion(Body):
    """What is known about the people who will come."""

    product: Name
    group_shares: NumbersByGroup
    bad_rates: NumbersByGroup
    auc: Annotated[Number, Field(gt=0.5, lt=1)]
    horizon: Annotated[int, Field(ge=1000, le=200_000)]
