"""Refusals as problem documents (RFC 9457): the field, the law and the way out; a value only where
it can be neither secret nor group.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.ledger import (
    Conflict,
    GapUnconfirmed,
    Gone,
    Invalid,
    LeaseHeld,
    LedgerLocked,
    LedgerUnavailable,
    NotFound,
    Refusal,
    StalePolicy,
    TooEarly,
)

MEDIA_TYPE = "application/problem+json"
SHOWN = ("label", "accept", "action", "scopes", "epoch", "product")
"""The last name of a field whose value may be repeated in a problem: none of them can hold a secret
or a group.
"""
_LONGEST = 60

STATUS: Mapping[type[EvenhandError], tuple[int, str]] = {
    Conflict: (409, "conflict"),
    Gone: (410, "gone"),
    NotFound: (404, "not-found"),
    Invalid: (422, "invalid"),
    StalePolicy: (409, "stale-policy"),
    LeaseHeld: (409, "lease-held"),
    TooEarly: (409, "too-early"),
    GapUnconfirmed: (503, "gap-unconfirmed"),
    LedgerLocked: (503, "ledger-locked"),
    LedgerUnavailable: (503, "ledger-unavailable"),
}
TITLES = {
    "conflict": "This key was used with another body",
    "gone": "This person has been erased",
    "not-found": "There is no such thing",
    "invalid": "A field breaks its law",
    "quarantined": "A rejected person has no outcome",
    "stale-policy": "Another trainer was faster",
    "lease-held": "Another trainer is at work",
    "too-early": "The window has not ended",
    "gap-unconfirmed": "The ledger was restored and does not draw",
    "ledger-locked": "The ledger belongs to another process",
    "ledger-unavailable": "Nothing can be made durable",
    "unauthorised": "A valid API key is needed",
    "forbidden": "The key lacks a scope",
    "too-large": "The body is too large",
    "too-deep": "The body is nested too deeply",
    "too-many": "Too many requests",
    "wrong-host": "The service does not answer for this host",
    "bad-json": "The body is no JSON",
    "method": "The method is not allowed here",
    "unsafe-origin": "The request comes from another site",
}


class ProblemError(Exception):
    """A refusal on its way out."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.headers = status, dict(headers or {})
        self.document = problem(status, kind, detail, hint=hint, **more)


def problem(status: int, kind: str, detail: str, *, hint: str | None = None, **more: Any) -> Json:
    """The document; `more` are members such as field, value, law and errors."""
    document: Json = {
        "type": f"urn:evenhand:problem:{kind}",
        "title": TITLES[kind],
        "status": status,
        "detail": detail,
    }
    return document | ({} if hint is None else {"hint": hint}) | more


def of_refusal(refusal: EvenhandError) -> Json:
    """A refusal of the ledger, or of the library, as a document."""
    status, kind = next(
        (found for known, found in STATUS.items() if isinstance(refusal, known)),
        (503, "ledger-unavailable") if isinstance(refusal, Refusal) else (422, "invalid"),
    )
    detail = str(refusal).removesuffix(f" Hint: {refusal.hint}")
    return problem(status, kind, detail, hint=refusal.hint)


def of_validation(errors: Sequence[Mapping[str, Any]]) -> Json:
    """What the schema refuses, field by field."""
    if any(error["type"] == "json_invalid" for error in errors):
        return problem(
            400,
            "bad-json",
            "the body cannot be read as JSON.",
            hint="send one JSON document in UTF-8.",
        )
    found = [_one(error) for error in errors[:20]]
    first = found[0]
    detail = f"{first['field']}: {first['law']}." + (
        f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    )
    return problem(
        422,
        "invalid",
        detail,
        hint="GET /openapi.json describes every field.",
        **first,
        errors=found,
    )


def _one(error: Mapping[str, Any]) -> Json:
    place = [str(part) for part in error["loc"] if part not in ("body", "query", "path")]
    field, name = ".".join(place) or "body", place[-1] if place else ""
    law = str(error["msg"]).removeprefix("Value error, ")
    named: Json = {"field": _printable(field), "law": law}
    value = error.get("input")
    if (
        name in SHOWN
        and isinstance(value, str | int | float | bool)
        and len(str(value)) <= _LONGEST
    ):
        named["value"] = value if isinstance(value, bool | int) else _printable(str(value))
    return named


def _printable(text: str) -> str:
    """A name that came from outside, short and without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[:_LONGEST])


def encode(document: Json) -> bytes:
    """The bytes of a document."""
    return json.dumps(document, ensure_ascii=True).encode()
