"""Services that let requests pass which the real one refuses: the mutants of requests.py."""

import json

from pydantic import ValidationError

from evenhand_service import (
    app,
    bodies,
    monitoring,
    problems,
    request_guard,
    schemas,
    state,
)
from evenhand_service.ledger import Conflict, Settlement, decision_draw
from evenhand_service.ledger.outcome_status import Facts, Reporter, Verdict
from evenhand_service.problems import ProblemError, validation_problem
from evenhand_service.request_guard import RequestGuard


def uncounted():
    """It validates whatever comes as it comes, describes every error, and counts no bytes."""
    bodies.LARGE = 10**12
    bodies._require_few = lambda body, most: None
    problems.MOST_ERRORS = 10**9
    RequestGuard._require_few_bytes = lambda self, scope, size: None


def rendered():
    """It writes the OpenAPI document for everybody who asks, however often."""
    app.cache = lambda write: write
    RequestGuard._require_seldom = lambda self, scope: None


def any_spelling():
    """Whatever can be printed is a name."""
    schemas.is_name = decision_draw.is_name = decision_draw.is_printable


def last_wins():
    """It reads bodies as Python does: any encoding, whatever they are said to be, and of two
    members of one name the last.
    """

    def read(model, body):
        try:
            return model.model_validate(json.loads(body))
        except ValidationError as error:
            raise ProblemError.of(validation_problem(error.errors())) from None

    bodies.parsed = read
    bodies.require_json = request_guard.require_json = lambda content_type: None


def any_host():
    """It answers for every name."""
    RequestGuard._require_host = lambda self, scope, headers: None


def one_scope():
    """Who may report outcomes may override; and a settlement is entered whatever it settles."""
    require, enter = request_guard.require_scope, Reporter._enter

    def wide(key, scope):
        require(key, "observe" if scope == "override" else scope)

    def oblige(self, transaction, row, report, entered):
        try:
            return enter(self, transaction, row, report, entered)
        except Conflict:
            if not isinstance(report, Settlement):
                raise
            body = {"decision": row.seq, "report": "settlement", "value": f"{report.label:+d}"}
            seq = transaction.append("outcome", body | {"details": {"by": report.by, "note": ""}})
            return Verdict("recorded", Facts(True).standing, seq)

    request_guard.require_scope = wide
    Reporter._enter = oblige


def all_at_once():
    """It counts a whole ledger when it is first asked for its metrics, and not before."""
    monitoring.ROWS_AT_ONCE = state.ROWS_AT_ONCE = 10**12
    state.Service.count = lambda self, product: None


MUTANTS = {
    "uncounted": uncounted,
    "rendered": rendered,
    "any spelling": any_spelling,
    "last wins": last_wins,
    "any host": any_host,
    "one scope": one_scope,
    "all at once": all_at_once,
}
