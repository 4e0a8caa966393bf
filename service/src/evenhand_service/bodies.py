"""How the bytes of a body become a request: counted, parsed and validated, in this order.

There is one model for each kind of request (schemas.py) and one parser, pydantic's. What costs more
than the bytes themselves is refused before it: a body with 180,000 members takes pydantic 40 ms,
and the list of its errors eight times as long; to count them takes half a millisecond.
"""

import asyncio
from typing import Annotated, Generic, TypeVar

import numpy as np
from fastapi import Depends
from numpy.typing import NDArray
from pydantic import ValidationError
from starlette.requests import Request

from evenhand_service import schemas
from evenhand_service.problems import ProblemError, validation_problem
from evenhand_service.schemas import Body

MOST_VALUES = 200_000
"""Values in a body: a batch of 1,000 people with 200 features each."""
LARGE = 2**16
"""Bytes from which on a body waits for its turn."""
PIECE = 2**16
"""Bytes that are looked at together."""
QUOTE, COMMA, COLON, BACKSLASH = b'",:\\'
Model = TypeVar("Model", bound=Body)


def parsed(model: type[Model], body: bytes) -> Model:
    """Read a body.

    Parameters
    ----------
    model : type
        What it should be.
    body : bytes
        JSON in UTF-8.

    Returns
    -------
    Body
        The request.

    Raises
    ------
    ProblemError
        400 if it is no JSON in UTF-8 or names a member twice; 422 if it has too many members or
        values, or is not what the model takes.

    Examples
    --------
    >>> from evenhand_service.schemas import OutcomeReport
    >>> parsed(OutcomeReport, b'{"key": "k1", "label": 1}').label
    1
    >>> parsed(OutcomeReport, b'{"key": "k1", "label": 1, "label": -1}')
    Traceback (most recent call last):
        ...
    evenhand_service.problems.ProblemError: a member of the body stands there twice.
    """
    most = model.most_members
    if body.count(b":") > most or body.count(b",") > MOST_VALUES:  # these may be inside of texts
        _require_few(body, most)
    try:
        request = model.model_validate_json(body)
    except ValidationError as error:
        raise ProblemError.of(validation_problem(error.errors(include_url=False))) from None
    # every member is a field of the model or an entry of a dictionary, for others are refused: if
    # the text has more of them, some name came twice, and the parser has kept the last
    if body.count(b":") != request.members and counted(body)[0] != request.members:
        raise ProblemError(
            "bad-json",
            "a member of the body stands there twice.",
            hint="name each member once: who sees the first may not be who sees the last.",
            requirement="names of members are unique",
        )
    return request


async def parsed_in_turn(model: type[Model], body: bytes, turn: asyncio.Lock) -> Model:
    """`parsed`; large bodies one after another, and whoever else waits for the event loop between
    them. Ten that come in together would keep a probe waiting for the sum of their times.
    """
    if len(body) < LARGE:
        return parsed(model, body)
    async with turn:
        await asyncio.sleep(0)
        return parsed(model, body)


def _require_few(body: bytes, most: int) -> None:
    members, values = counted(body, most, MOST_VALUES)
    if members > most:
        raise ProblemError(
            "too-many-members",
            f"the body has more than {most:,} members.",
            hint="send known fields alone, features as a list, and smaller batches.",
            requirement=f"at most {most} members",
        )
    if values > MOST_VALUES:
        raise ProblemError(
            "too-many-members",
            f"the body has more than {MOST_VALUES:,} values.",
            hint="send smaller batches.",
            requirement=f"at most {MOST_VALUES} values",
        )


def counted(body: bytes, most: float = np.inf, most_values: float = np.inf) -> tuple[int, int]:
    """Count the members of all objects, and the values besides the first of each list or object.

    Parameters
    ----------
    body : bytes
        JSON. Of what is no JSON, the part before the first error is counted rightly, which is what
        a parser would see of it.
    most, most_values : float
        Beyond these the rest is not looked at.

    Returns
    -------
    (int, int)
        The colons and the commas outside of texts.

    Examples
    --------
    >>> counted(b'{"a:": [1, 2, "x,\\\\"y,"], "b": {}}')
    (2, 3)
    """
    marks = np.frombuffer(body, dtype=np.uint8)
    members = values = start = 0
    inside = 0
    while start < len(body) and members <= most and values <= most_values:
        end = min(start + PIECE, len(body))
        while end < len(body) and body[end - 1] == BACKSLASH:
            end += 1  # what a backslash escapes is in the same piece
        piece = marks[start:end]
        quotes = piece == QUOTE
        quotes[_escaped(piece)] = False
        # odd after an opening quote: a text
        depth = np.add.accumulate(quotes, dtype=np.uint8) + np.uint8(inside)
        outside = (depth & 1) == 0
        members += int(np.count_nonzero(outside & (piece == COLON)))
        values += int(np.count_nonzero(outside & (piece == COMMA)))
        inside = int(depth[-1]) & 1
        start = end
    return members, values


def _escaped(piece: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The places that a backslash escapes: those after the first, third, ... of a run."""
    places = np.flatnonzero(piece == BACKSLASH)
    if not len(places):
        return places
    begins = np.diff(places, prepend=-2) != 1
    first = np.maximum.accumulate(np.where(begins, places, 0))
    after: NDArray[np.intp] = places[(places - first) % 2 == 0] + 1
    return after[after < len(piece)]


class Reads(Generic[Model]):
    """A dependency of a route: its body, as a model. `app.described` writes it into the document.

    FastAPI's own way would parse with another parser, after the guard has let the body pass.
    """

    def __init__(self, model: type[Model]) -> None:
        self.model = model

    async def __call__(self, request: Request) -> Model:
        """The body of a request."""
        require_json(request.headers.get("content-type", ""))
        turn = request.app.state.service.large_bodies
        return await parsed_in_turn(self.model, await request.body(), turn)


def require_json(content_type: str) -> None:
    """415 unless the body is said to be JSON, in UTF-8 (RFC 8259 knows no other encoding)."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind == "application/json" and set(parameters) <= {"charset=utf-8", 'charset="utf-8"', ""}:
        return
    raise ProblemError(
        "media-type",
        "the body is not said to be JSON in UTF-8.",
        hint="send Content-Type: application/json.",
        requirement="application/json, without another charset than utf-8",
    )


TakesDecision = Annotated[schemas.DecisionRequest, Depends(Reads(schemas.DecisionRequest))]
TakesDecisions = Annotated[schemas.DecisionBatch, Depends(Reads(schemas.DecisionBatch))]
TakesOutcome = Annotated[schemas.OutcomeReport, Depends(Reads(schemas.OutcomeReport))]
TakesOutcomes = Annotated[schemas.OutcomeBatch, Depends(Reads(schemas.OutcomeBatch))]
TakesOverride = Annotated[schemas.OverrideReport, Depends(Reads(schemas.OverrideReport))]
TakesGroup = Annotated[schemas.GroupBody, Depends(Reads(schemas.GroupBody))]
TakesSettlement = Annotated[schemas.SettlementReport, Depends(Reads(schemas.SettlementReport))]
TakesQuestion = Annotated[schemas.LaunchQuestion, Depends(Reads(schemas.LaunchQuestion))]
TakesOperation = Annotated[schemas.Operation, Depends(Reads(schemas.Operation))]
TakesErasure = Annotated[schemas.Erasure, Depends(Reads(schemas.Erasure))]
TakesConfirmation = Annotated[schemas.Confirmation, Depends(Reads(schemas.Confirmation))]
TakesNewKey = Annotated[schemas.NewKey, Depends(Reads(schemas.NewKey))]
TakesKeyRotation = Annotated[schemas.KeyRotation, Depends(Reads(schemas.KeyRotation))]
