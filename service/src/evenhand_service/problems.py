"""Errors as problem documents (RFC 9457): the field, its requirement and the way out. A value is
repeated only where it can be neither a secret nor a group.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand_service.ledger import (
    Archived,
    Conflict,
    GapUnconfirmed,
    Gone,
    KeyRevoked,
    LeaseHeld,
    LedgerLocked,
    NotFound,
    Refusal,
    SecondKeyNeeded,
    StalePolicy,
    TooEarly,
)
from evenhand_service.ledger import Invalid as InvalidField
from evenhand_service.product_changes import GuaranteeChanged

PROBLEMS = {
    "conflict": (409, "This key was used with another body"),
    "gone": (410, "This person has been erased"),
    "archived": (410, "This decision is in an archive"),
    "not-found": (404, "There is no such thing"),
    "invalid": (422, "A field is not what it must be"),
    "quarantined": (409, "A rejected person has no outcome"),
    "stale-policy": (409, "Another trainer was faster"),
    "lease-held": (409, "Another trainer is at work"),
    "second-key": (409, "Another key must ask for the same"),
    "too-early": (409, "The window has not ended"),
    "gap-unconfirmed": (503, "The ledger was restored and does not draw"),
    "ledger-locked": (503, "The ledger belongs to another process"),
    "ledger-unavailable": (503, "Nothing can be made durable"),
    "product-changed": (503, "The settings are not those of the ledger"),
    "not-ready": (503, "The service cannot decide now"),
    "unauthorised": (401, "A valid API key is needed"),
    "forbidden": (403, "The key lacks a scope"),
    "too-large": (413, "The body is too large"),
    "too-many-members": (422, "The body has too many members"),
    "media-type": (415, "The body must be JSON"),
    "too-many": (429, "Too many requests"),
    "wrong-host": (421, "The service does not answer for this host"),
    "bad-json": (400, "The body is no JSON"),
    "bad-request": (400, "This is no sound HTTP request"),
    "method": (405, "The method is not allowed here"),
    "unsafe-origin": (403, "The request comes from another site"),
}
"""The status and the title of each kind of problem."""
KINDS: Mapping[type[EvenhandError], str] = {
    Conflict: "conflict",
    Gone: "gone",
    Archived: "archived",
    NotFound: "not-found",
    InvalidField: "invalid",
    StalePolicy: "stale-policy",
    LeaseHeld: "lease-held",
    TooEarly: "too-early",
    SecondKeyNeeded: "second-key",
    GapUnconfirmed: "gap-unconfirmed",
    LedgerLocked: "ledger-locked",
    KeyRevoked: "unauthorised",
    GuaranteeChanged: "product-changed",
    Refusal: "ledger-unavailable",
    EvenhandError: "invalid",
}
"""The kind of each refusal; the first class that fits holds."""
SHOWN_FIELDS = ("label", "accept", "action", "scopes", "epoch", "product")
"""Fields whose value may be repeated: none of them can hold a secret or a group."""
MOST_ERRORS = 20
"""Fields of a body that a refusal names."""
LONGEST_SHOWN = 60
"""Characters of a value or of the name of a field that are repeated."""


def problem(kind: str, detail: str, *, hint: str | None = None, **more: object) -> Json:
    """A problem document; `more` are members such as field, value, requirement and errors."""
    status, title = PROBLEMS[kind]
    document = {
        "type": f"urn:evenhand:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    return document | ({} if hint is None else {"hint": hint}) | more


class ProblemError(Exception):
    """A request that is refused with a problem document."""

    def __init__(
        self, kind: str, detail: str, *, hint: str, headers: Mapping[str, str] = {}, **more: object
    ) -> None:
        super().__init__(detail)
        self.document = problem(kind, detail, hint=hint, **more)
        self.headers = headers

    @classmethod
    def of(cls, document: Json) -> "ProblemError":
        """Of a problem document."""
        made = cls("invalid", document["detail"], hint="")
        made.document = document
        return made


def problem_response(document: Json, headers: Mapping[str, str] | None = None) -> Response:
    """A problem document as a response."""
    content = canonical(document).encode()
    return Response(content, document["status"], headers, "application/problem+json")


class InvalidFeature(InvalidField):
    """A feature of a person is not what the product takes.

    Parameters
    ----------
    message : str
        The feature and its value.
    requirement : str
        What it must be.
    hint : str
        How to mend it.
    field : str
        The feature as the API names it: "features.income".
    """

    def __init__(self, message: str, *, requirement: str, hint: str, field: str) -> None:
        super().__init__(message, requirement=requirement, hint=hint)
        self.field = field


def refusal_problem(refusal: EvenhandError) -> Json:
    """The problem document of a refusal by the ledger or by the library."""
    kind = next(kind for known, kind in KINDS.items() if isinstance(refusal, known))
    detail = refusal.sentence
    if not isinstance(refusal, InvalidFeature):
        return problem(kind, detail, hint=refusal.hint)
    wrong = {"field": refusal.field, "requirement": refusal.requirement}
    return problem(kind, detail, hint=refusal.hint, **wrong, errors=[wrong])


ALTERNATIVES = {
    "group": "must be printable text of 1 to 200 characters, true, false, or a number of at most "
    "2**53",
}
"""The requirement of a field that takes several types; pydantic has one for each type."""


_INNER = re.compile(r"(?:bool|int|float|str|constrained-\w+)$|[\w-]+\[.*\]$", re.S)
"""pydantic's names for the alternatives of a type, which are no part of a place."""


def validation_problem(errors: Sequence[Mapping[str, Any]]) -> Json:
    """The problem document of what a schema refuses, field by field."""
    if any(error["type"] == "json_invalid" for error in errors):
        return problem(
            "bad-json", "the body cannot be read as JSON.", hint="send one JSON document in UTF-8."
        )

    def printable(text: str) -> str:
        return "".join(c if c.isprintable() else "?" for c in text[:LONGEST_SHOWN])

    requirements: dict[str, list[str]] = {}
    values: dict[str, object] = {}
    unread = len(errors)
    for error in errors:
        if len(requirements) > MOST_ERRORS:
            break  # nobody reads so many, and an enemy sends more
        unread -= 1
        parts = [str(part) for part in error["loc"] if part not in ("body", "query", "path")]
        place = [part for part in parts if not _INNER.match(part)]
        if error["type"] == "extra_forbidden" and parts and _INNER.match(parts[-1]):
            place.append(parts[-1])  # an unknown field with such a name
        field = printable(".".join(place) or "body")
        requirement = str(error["msg"]).removeprefix("Value error, ")
        if place:
            requirement = ALTERNATIVES.get(place[-1], requirement)
        requirements.setdefault(field, []).append(requirement)
        value = error.get("input")
        if (
            place
            and place[-1] in SHOWN_FIELDS
            and isinstance(value, str | int | float | bool)
            and len(str(value)) <= LONGEST_SHOWN
        ):
            whole = isinstance(value, int) and abs(value) <= 2**53
            values[field] = value if whole else printable(str(value))
    refused: list[Json] = [
        {"field": field, "requirement": " or ".join(dict.fromkeys(said))}
        | ({"value": values[field]} if field in values else {})
        for field, said in list(requirements.items())[:MOST_ERRORS]
    ]
    first = refused[0]
    detail = f"{first['field']}: {first['requirement']}."
    others = len(requirements) - 1
    if others:
        detail += f" (and {others} {'or more' if unread else 'more'})"
    hint = "GET /openapi.json describes every field."
    return problem("invalid", detail, hint=hint, **first, errors=refused)


def error_response(error: ProblemError | EvenhandError) -> Response:
    """The answer to a request that was refused."""
    if isinstance(error, ProblemError):
        return problem_response(error.document, error.headers)
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, KeyRevoked) else {}
    return problem_response(refusal_problem(error), headers)
