"""The ledger of the decision service: append-only, hash-chained, replayable. See
`service/docs/ledger.md`.
"""

from evenhand_service.ledger.audit import (
    backup,
    export,
    restore,
    verify,
)
from evenhand_service.ledger.chain import Basis, SignedHead
from evenhand_service.ledger.decision_draw import (
    Answer,
    Application,
    Drawn,
    DrawRequest,
    Gate,
    Mode,
    Terms,
    WindowPlan,
    require_name,
)
from evenhand_service.ledger.decision_list import Wanted, list_decisions
from evenhand_service.ledger.guard import Clock, SystemClock
from evenhand_service.ledger.history import Row
from evenhand_service.ledger.keyring import Keyring
from evenhand_service.ledger.ledger import Ledger
from evenhand_service.ledger.outcome_status import (
    Counts,
    Facts,
    GroupReport,
    Label,
    Override,
    Report,
    Settlement,
    Standing,
    Verdict,
)
from evenhand_service.ledger.publishing import CertificateRow, Event, Lease, PolicyRecord
from evenhand_service.ledger.refusals import (
    Archived,
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
    SecondKeyNeeded,
    StalePolicy,
    Switched,
    Tampered,
    TooEarly,
)
from evenhand_service.ledger.standalone_verifier import Problem

__all__ = [
    "Answer",
    "Application",
    "Archived",
    "Basis",
    "CertificateRow",
    "Clock",
    "ClockJumped",
    "Conflict",
    "Counts",
    "Damaged",
    "DrawRequest",
    "Drawn",
    "Event",
    "Facts",
    "GapUnconfirmed",
    "Gate",
    "Gone",
    "GroupReport",
    "Invalid",
    "KeyRevoked",
    "Keyring",
    "Label",
    "Lease",
    "LeaseHeld",
    "Ledger",
    "LedgerLocked",
    "LedgerUnavailable",
    "Mode",
    "NotFound",
    "Override",
    "PolicyRecord",
    "Problem",
    "Refusal",
    "Report",
    "Row",
    "SecondKeyNeeded",
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
    "Wanted",
    "WindowPlan",
    "backup",
    "export",
    "list_decisions",
    "require_name",
    "restore",
    "verify",
]
