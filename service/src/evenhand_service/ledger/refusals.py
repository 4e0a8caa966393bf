"""What the ledger refuses: each refusal names the thing, its value, the requirement and the way
out, and never a secret or a group.

Refusal
├── Conflict            the key was used with another body, or nothing is disputed
├── Gone                the person has been erased
├── Archived            the decision is in an archive, and no longer here
├── NotFound            no decision, policy or window of that name
├── Invalid             a field breaks its requirement (also a ValueError)
├── StalePolicy         publish lost the race
├── LeaseHeld           another trainer holds the lease
├── TooEarly            a secret of a window that has not ended
├── GapUnconfirmed      restored; an operator must confirm the gap
├── LedgerLocked        another process has the SQLite file
├── KeyRevoked          the API key of whoever asks was revoked on the way
├── SecondKeyNeeded     another key must ask for the same
├── Switched            the terms were made before a switch or a change of keys
├── LedgerUnavailable   disk full, fsync error, closed: no answer
│   ├── Tampered        the end of the chain was not written with the keyring, or went back
│   └── ClockJumped     a clock is more than a minute ahead of the others
└── Damaged             something does not verify
"""

from evenhand.errors import EvenhandError, InvalidInput


class Refusal(EvenhandError):
    """Root of what the ledger refuses.

    Parameters
    ----------
    message : str
        The thing, its value, and the requirement that it breaks.
    hint : str, optional
        The way out; it is printed after the message.

    Examples
    --------
    >>> print(Refusal("the key is empty.", hint="send a key."))
    the key is empty. Hint: send a key.
    """


class Conflict(Refusal):
    """The key of an application was used before with another body, or a settlement has no dispute.

    Examples
    --------
    >>> issubclass(Conflict, Refusal)
    True
    """


class Gone(Refusal):
    """The person has been erased; the key will never be answered again.

    Examples
    --------
    >>> issubclass(Gone, Refusal)
    True
    """


class Archived(Refusal):
    """The decision of a key is in an archive: nothing more is drawn for it or reported about it.

    Examples
    --------
    >>> issubclass(Archived, Refusal)
    True
    """


class NotFound(Refusal):
    """No decision, policy or window of that name.

    Examples
    --------
    >>> issubclass(NotFound, Refusal)
    True
    """


class Invalid(Refusal, InvalidInput):
    """A field breaks its requirement. It is a `ValueError` too.

    Examples
    --------
    >>> from evenhand_service.ledger import Terms
    >>> Terms("policy", 1.5)
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.Invalid: acceptance is 1.5; a probability lies in [0, 1].
    """


class StalePolicy(Refusal):
    """A publication that is not the next one, or whose lease has passed to another.

    Examples
    --------
    >>> issubclass(StalePolicy, Refusal)
    True
    """


class LeaseHeld(Refusal):
    """Another trainer holds the lease.

    Examples
    --------
    >>> issubclass(LeaseHeld, Refusal)
    True
    """


class TooEarly(Refusal):
    """A secret is asked for while it still decides.

    Examples
    --------
    >>> issubclass(TooEarly, Refusal)
    True
    """


class GapUnconfirmed(Refusal):
    """The ledger was restored from a backup, and nobody has confirmed what is missing.

    Examples
    --------
    >>> issubclass(GapUnconfirmed, Refusal)
    True
    """


class LedgerLocked(Refusal):
    """Another process has opened the SQLite file.

    Examples
    --------
    >>> issubclass(LedgerLocked, Refusal)
    True
    """


class KeyRevoked(Refusal):
    """The API key of whoever asks was revoked before what they asked for was done; nothing was.

    Examples
    --------
    >>> issubclass(KeyRevoked, Refusal)
    True
    """


class SecondKeyNeeded(Refusal):
    """This is on record as proposed; it is done when another key asks for the same.

    Examples
    --------
    >>> issubclass(SecondKeyNeeded, Refusal)
    True
    """


class Switched(Refusal):
    """What decides, or who may ask, has changed since the terms were made; nothing was drawn.

    Examples
    --------
    >>> issubclass(Switched, Refusal)
    True
    """


class LedgerUnavailable(Refusal):
    """Nothing can be made durable, so nothing is answered.

    Examples
    --------
    >>> issubclass(LedgerUnavailable, Refusal)
    True
    """


class DatabaseAway(LedgerUnavailable):
    """PostgreSQL, or the way to it, has failed, whatever was asked.

    Examples
    --------
    >>> issubclass(DatabaseAway, LedgerUnavailable)
    True
    """


class Tampered(LedgerUnavailable):
    """The end of the chain was not sealed by the keyring, or is older than what was written.

    Examples
    --------
    >>> issubclass(Tampered, LedgerUnavailable)
    True
    """


class ClockJumped(LedgerUnavailable):
    """A clock is ahead of the others, so nothing is dated by it.

    Examples
    --------
    >>> issubclass(ClockJumped, LedgerUnavailable)
    True
    """


class Damaged(Refusal):
    """A row, a signature or a sealed field does not verify.

    Examples
    --------
    >>> from evenhand_service.ledger import SignedHead
    >>> SignedHead.from_json({})
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.Damaged: this is no signed head. Hint: ...
    """
