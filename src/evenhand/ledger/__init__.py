"""The ledger of the decision service: append-only, hash-chained, replayable. Needs the extra
`service`; see `docs/ledger.md`.
"""

from evenhand.fairness.certificate import RULES
from evenhand.ledger.audit import (
    Verification,
    backup,
    export,
    mark_restored,
    recompute,
    restore,
    verify,
)
from evenhand.ledger.chain import Basis, Head, SignedHead
from evenhand.ledger.decision_draw import (
    Answer,
    Application,
    Asked,
    Drawn,
    Mode,
    Terms,
    Window,
    WindowPlan,
    render_answer,
    require_name,
)
from evenhand.ledger.decision_list import DecisionPage, Wanted, list_decisions
from evenhand.ledger.guard import Clock, SystemClock
from evenhand.ledger.history import Explained, LateGroup, Overruled, Row
from evenhand.ledger.keyring import Keyring, verify_signature
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.outcome_status import (
    Counts,
    Facts,
    GroupTold,
    Label,
    Override,
    Report,
    Settlement,
    Standing,
    Verdict,
)
from evenhand.ledger.publishing import Active, CertificateRow, Event, Lease, PolicyRecord
from evenhand.ledger.refusals import (
    ClockJumped,
    Conflict,
    Damaged,
    GapUnconfirmed,
    Gone,
    Invalid,
    KeyRevoked,
    LeaseHeld,
    LedgerLocked,
    LedgerUnavailable,
    NotFound,
    Refusal,
    StalePolicy,
    Switched,
    Tampered,
    TooEarly,
)
from evenhand.ledger.standalone_verifier import Problem

Policy = PolicyRecord
"""The former name of `PolicyRecord`; `evenhand.contracts.Policy` is what decides."""

__all__ = [
    "RULES",
    "Active",
    "Answer",
    "Application",
    "Asked",
    "Basis",
    "CertificateRow",
    "Clock",
    "ClockJumped",
    "Conflict",
    "Counts",
    "Damaged",
    "DecisionPage",
    "Drawn",
    "Event",
    "Explained",
    "Facts",
    "GapUnconfirmed",
    "Gone",
    "GroupTold",
    "Head",
    "Invalid",
    "KeyRevoked",
    "Keyring",
    "Label",
    "LateGroup",
    "Lease",
    "LeaseHeld",
    "Ledger",
    "LedgerLocked",
    "LedgerUnavailable",
    "Mode",
    "NotFound",
    "Override",
    "Overruled",
    "Policy",
    "PolicyRecord",
    "Problem",
    "Refusal",
    "Report",
    "Row",
    "Settlement",
    "SignedHead",
    "StalePolicy",
    "Standing",
    "Switched",
    "SystemClock",
    "Tampered",
    "Terms",
    "TooEarly",
    "Verdict",
    "Verification",
    "Wanted",
    "Window",
    "WindowPlan",
    "backup",
    "export",
    "list_decisions",
    "mark_restored",
    "recompute",
    "render_answer",
    "require_name",
    "restore",
    "verify",
    "verify_signature",
]
