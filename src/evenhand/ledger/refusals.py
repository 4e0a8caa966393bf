"""What the ledger refuses: each refusal names the thing, its value, the law and the way out, and
never a secret or a group.

Refusal
├── Conflict            the key was used with another body
├── Gone                the person has been erased
├── NotFound            no decision, policy or window of that name
├── Invalid             a field breaks its law (also a ValueError)
├── StalePolicy         publish lost the race
├── LeaseHeld           another trainer holds the lease
├── TooEarly            a secret of a window that has not ended
├── GapUnconfirmed      restored; an operator must confirm the gap
├── LedgerLocked        another process has the SQLite file
├── LedgerUnavailable   disk full, fsync error, closed: no answer
└── Damaged             something does not verify
"""

from evenhand.errors import EvenhandError, InvalidInput


class Refusal(EvenhandError):
    """Root of what the ledger refuses."""


class Conflict(Refusal):
    """The application key was used before with another body."""


class Gone(Refusal):
    """The person has been erased; the key will never be answered again."""


class NotFound(Refusal):
    """No decision, policy or window of that name."""


class Invalid(Refusal, InvalidInput):
    """A field breaks its law."""


class StalePolicy(Refusal):
    """A publication that is not the next one, or whose lease has passed to another."""


class LeaseHeld(Refusal):
    """Another trainer holds the lease."""


class TooEarly(Refusal):
    """A secret is asked for while it still decides."""


class GapUnconfirmed(Refusal):
    """The ledger was restored from a backup, and nobody has confirmed what is missing."""


class LedgerLocked(Refusal):
    """Another process has opened the SQLite file."""


class LedgerUnavailable(Refusal):
    """Nothing can be made durable, so nothing is answered."""


class Damaged(Refusal):
    """A row, a signature or a sealed field does not verify."""
