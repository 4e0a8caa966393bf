"""API keys, sessions, and people behind a proxy: who may do what, and how often.

A key is 256 random bits, shown once and stored as its SHA-256 with its scopes and its end. It
cannot be guessed from its hash, so the hash needs neither salt nor stretching. Keys are rows of the
chain: created, and perhaps revoked. The head of the chain names the newest such row, so that every
replica knows whether it has seen all of them.
"""

import hashlib
import hmac
import ipaddress
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from starlette import types
from starlette.requests import Request

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand_service.ledger import Damaged, Event, Ledger, SystemClock, require_name
from evenhand_service.ledger.guard import LOG
from evenhand_service.ledger.history import seal_of_keys
from evenhand_service.ledger.ledger import KeyChange
from evenhand_service.problems import ProblemError
from evenhand_service.settings import Settings

Scope = Literal["decide", "observe", "override", "audit", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a key may be allowed to do."""
PREFIX = "eh_"
SESSION_SECONDS = 8 * 3600
DAY = 86400.0
KEY_DAYS = 90.0
"""Days after which a key ends, unless somebody says otherwise."""
MOST_DAYS = 3650.0
OVERLAP_DAYS = 7.0
"""Days for which a key that was rotated goes on beside its successor."""
SOON = 14 * DAY
"""Seconds before its end from which on a key is reported."""


@dataclass(frozen=True)
class Key:
    """What is stored of a key; `id` is the beginning of its hash and may be shown. From `ends` on,
    in seconds, it opens nothing.
    """

    id: str
    scopes: frozenset[Scope]
    sha256: str
    name: str = ""
    ends: float = 0.0
    revoked: bool = False


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _checked_scopes(names: Iterable[str]) -> frozenset[Scope]:
    scopes = frozenset(names)
    if not scopes or not scopes <= set(SCOPES):
        raise InvalidInput(f"a key needs some of the scopes {', '.join(SCOPES)}.")
    return cast(frozenset[Scope], scopes)


def _days(what: str, days: float, least: float = 0.0) -> float:
    if not least <= days <= MOST_DAYS or days != days:
        raise InvalidInput(
            f"{what} is {days:g} days; it must be from {least:g} to {MOST_DAYS:g}.",
            hint=f"the default is {KEY_DAYS:g}: every key has an end.",
        )
    return days * DAY


def _new_key(scopes: Iterable[str], name: str, ends: float) -> tuple[str, Key]:
    """A token, and what is stored of it."""
    if name:
        require_name("the name of a key", name)
    token = PREFIX + secrets.token_urlsafe(32)
    digest = _digest(token)
    return token, Key(digest[:12], _checked_scopes(scopes), digest, name, ends)


class LedgerKeys:
    """The API keys, in the chain of the ledger.

    A key that is revoked stays so, and none is lost: creations and revocations of all replicas
    follow one another in the chain. What is looked up is what was there at the last `refresh`, or
    at the last change made here; the service compares it with the head of the chain.

    Parameters
    ----------
    ledger : Ledger
        The ledger.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     keys = LedgerKeys(ledger)
    ...     key = keys.find(keys.add(["decide"], "web shop", by="Ada"))
    ...     keys.revoke(key.id, by="Ada"), [e.action for e in ledger.key_events()]
    (True, ['key_created', 'key_revoked'])
    """

    def __init__(self, ledger: Ledger) -> None:

        self._lock = threading.Lock()
        self._keys: dict[str, Key] = {}
        self._ledger = ledger
        self._upto = 0
        self._told: tuple[float, float] = (-math.inf, 0.0)
        self._warned: dict[str, float] = {}
        self._rotations: list[Event] = []
        events = ledger.key_events()
        self._require_sealed(events)
        self._take_up(events)

    def find(self, token: str) -> Key | None:
        """Return the key behind a token.

        The time that this takes says nothing about the token, because its hash is looked up.

        Parameters
        ----------
        token : str
            What the caller sent.

        Returns
        -------
        Key or None
            None if the key is unknown or revoked.
        """
        return self.by_digest(_digest(token))

    def by_digest(self, digest: str) -> Key | None:
        """Return the key with a stored hash, which is what a session remembers.

        Parameters
        ----------
        digest : str
            The SHA-256 of the token, in hexadecimal.

        Returns
        -------
        Key or None
            None if the key is unknown or revoked.
        """
        key = self._keys.get(digest)
        if key is None or key.revoked:
            return None
        left = key.ends - self.now()
        if left < SOON:
            self._warn(key, left)
        return key if left > 0 else None

    def now(self) -> float:
        """Return the time by which keys end.

        Returns
        -------
        float
            That of the ledger, in seconds; a system's clock is read once a second.
        """
        if not isinstance(self._ledger.clock, SystemClock):
            return self._ledger.clock()
        here = time.monotonic()
        if here - self._told[0] > 1.0:
            self._told = (here, self._ledger.clock())
        return self._told[1]

    def _warn(self, key: Key, left: float) -> None:
        """Say once a day that a key which is used ends soon, or has ended."""
        now = self.now()
        if now - self._warned.get(key.id, -math.inf) < DAY:
            return
        self._warned[key.id] = now
        when = f"ends in {left / DAY:.1f} days" if left > 0 else "has ended"
        LOG.warning("the API key %s (%s) %s: evenhand keys rotate", key.id, key.name, when)

    def endings(self) -> list[float]:
        """Return how long the keys last.

        Returns
        -------
        list of float
            The seconds until each valid key ends, the next one first.
        """
        now = self.now()
        return sorted(k.ends - now for k in self.all() if not k.revoked and k.ends > now)

    def all(self) -> list[Key]:
        """Return the keys, revoked ones too.

        Returns
        -------
        list of Key
            In the order in which they were made.
        """
        return list(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def refresh(self) -> None:
        """Take up what was created and revoked since."""
        self._take_up(self._ledger.key_events(self._upto))

    def add(
        self, scopes: Iterable[str], name: str = "", by: str = "", days: float = KEY_DAYS
    ) -> str:
        """Make a key; it opens every replica when this returns.

        Parameters
        ----------
        scopes : iterable of str
            What it may do: some of `SCOPES`.
        name : str
            What the key is for, in words.
        by : str
            Who makes it; recorded.
        days : float
            After how many days it ends.

        Returns
        -------
        str
            The token. It is stored nowhere, so it cannot be shown again.

        Raises
        ------
        InvalidInput
            If there is no scope, or an unknown one, or the end is none.
        """
        ends = self._ledger.clock() + _days("the validity of a key", days, least=1 / 24)
        token, key = _new_key(scopes, name, ends)
        self._change(lambda _: [self._created(key, by)])
        return token

    def rotate(
        self, key_id: str, by: str = "", days: float = KEY_DAYS, overlap_days: float = OVERLAP_DAYS
    ) -> str | None:
        """Make the successor of a key; both open for a while.

        Parameters
        ----------
        key_id : str
            The `id` of the key; its name and scopes are the successor's.
        by : str
            Who rotates it; recorded.
        days : float
            After how many days the successor ends.
        overlap_days : float
            After how many days the old key ends, if it does not end before.

        Returns
        -------
        str or None
            The token of the successor, which cannot be shown again; None if no valid key has this
            id.

        Raises
        ------
        InvalidInput
            If a number of days is none.
        """
        now = self._ledger.clock()
        ends = now + _days("the validity of a key", days, least=1 / 24)
        until = now + _days("the overlap", overlap_days)
        old = next((k for k in self.all() if k.id == key_id), None)
        if old is None:
            return None
        token, key = _new_key(old.scopes, old.name, ends)

        def change(keys: Mapping[str, Key]) -> list[KeyChange]:
            known = keys.get(old.sha256)
            if known is None or known.revoked or known.ends <= now:
                return []
            return [self._created(key, by, replaces=old.sha256, until=until)]

        self._change(change)
        return token if key.sha256 in self._keys else None

    def revoke(self, key_id: str, by: str = "") -> bool:
        """Revoke a key; it opens no replica when this returns.

        Parameters
        ----------
        key_id : str
            The `id` of the key.
        by : str
            Who revokes it; recorded.

        Returns
        -------
        bool
            Whether there is such a key.
        """

        def change(keys: Mapping[str, Key]) -> list[KeyChange]:
            mine = [key for key in keys.values() if key.id == key_id]
            return [_revoked(key, by) for key in mine if not key.revoked]

        self._change(change)
        return any(key.id == key_id for key in self.all())

    def first(self, by: str) -> str | None:
        """Make one key with every scope if there is none.

        Parameters
        ----------
        by : str
            Who makes it.

        Returns
        -------
        str or None
            The token; None if there are keys. Of several replicas that do this at once, one gets
            it.
        """
        ends = self._ledger.clock() + KEY_DAYS * DAY
        token, key = _new_key(SCOPES, "first", ends)
        self._change(lambda keys: [] if keys else [self._created(key, by)])
        return token if key.sha256 in self._keys else None

    # rows of the chain

    def _change(self, change: Callable[[Mapping[str, Key]], list[KeyChange]]) -> None:
        with self._lock:
            upto = self._upto
            keys = self._keys
        self._take_up(
            self._ledger.change_keys(lambda events: change(self._fold(keys, events)), upto)
        )

    def _take_up(self, events: Sequence[Event]) -> None:
        with self._lock:
            new = [event for event in events if event.seq > self._upto]
            self._keys = self._fold(self._keys, new)
            self._upto = max([self._upto, *(event.seq for event in new)])

    def _require_sealed(self, events: Sequence[Event]) -> None:
        """Whoever has a root that was rotated away, and the database, adds no key to those that
        were there before the rotation.
        """
        keyring = self._ledger.keyring
        roots = [0, *(int(event.info["root"]) for event in self._read_rotations())]
        for event in self._rotations:
            before = [one for one in events if one.seq < event.seq]
            sealed = seal_of_keys(keyring, int(event.info["root"]), before)
            if not hmac.compare_digest(str(event.info.get("keys")), sealed):
                raise Damaged(
                    f"the API keys before row {event.seq} are not those that the root of that row "
                    "has sealed.",
                    hint="find out what was changed (evenhand audit verify --deep), then restore.",
                )
        if keyring.active not in roots:
            raise Damaged(
                f"root {keyring.active} seals the chain, and no row says since when.",
                hint="find out what was changed (evenhand audit verify --deep), then restore.",
            )

    def _read_rotations(self) -> list[Event]:
        events = self._ledger.events() if self._ledger.keyring.active else []
        self._rotations = [event for event in events if event.action == "root_rotated"]
        return self._rotations

    def _root_at(self, seq: int) -> int:
        """Which root sealed the keys of a row."""
        newest = [int(event.info["root"]) for event in self._rotations]
        if self._ledger.keyring.active not in (0, *newest):  # another replica has rotated
            self._read_rotations()
        before = (int(one.info["root"]) for one in self._rotations if one.seq < seq)
        return max(before, default=0)

    def _fold(self, keys: Mapping[str, Key], events: Sequence[Event]) -> dict[str, Key]:
        found = dict(keys)
        for event in events:
            info = event.info
            digest = str(event.info["sha256"])
            if event.action == "key_revoked" and digest in found:
                found[digest] = replace(found[digest], revoked=True)
            elif event.action == "key_created" and digest not in found:
                scopes = _checked_scopes(info["scopes"])
                ends = float(info["ends"])
                key = Key(digest[:12], scopes, digest, info["name"], ends)
                # nobody who can only write the database makes a key that opens, not even with a
                # root that was rotated away
                old = (str(info.get("replaces", "")), float(info.get("until", 0.0)))
                if hmac.compare_digest(
                    str(info["seal"]), self._seal(key, self._root_at(event.seq), *old)
                ):
                    found[digest] = key
                    if old[0] in found:
                        before = found[old[0]]
                        found[old[0]] = replace(before, ends=min(before.ends, old[1]))
        return found

    def _created(self, key: Key, by: str, replaces: str = "", until: float = 0.0) -> KeyChange:
        about: Json = {"id": key.id, "sha256": key.sha256, "name": key.name, "ends": key.ends}
        if replaces:
            about |= {"replaces": replaces, "until": until}
        sealed = self._seal(key, self._ledger.keyring.active, replaces, until)
        return "key_created", by, about | {"scopes": sorted(key.scopes), "seal": sealed}

    def _seal(self, key: Key, root: int, replaces: str, until: float) -> str:
        ends = (repr(float(key.ends)), replaces, repr(float(until)))
        parts = (key.sha256, key.name, *ends, *sorted(key.scopes))
        return self._ledger.keyring.seal_of_root(root, "api key", *parts).hex()


def _revoked(key: Key, by: str) -> KeyChange:
    return "key_revoked", by, {"id": key.id, "sha256": key.sha256, "name": key.name}


@dataclass
class RateLimiter:
    """Token buckets: each name has `rate` requests (or bytes) a second, and `burst` at once. Beyond
    `most` names the one that was seen least recently is forgotten.
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    most: int = 10_000
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def take(self, name: str, amount: float = 1.0) -> float:
        """0 if the request is within the limit, else the seconds to wait."""
        now = self.clock()
        level, seen = self._levels.pop(name, (self.burst, now))
        level = min(self.burst, level + (now - seen) * self.rate)
        wait = 0.0 if level >= amount else (amount - level) / self.rate
        self._levels[name] = (level - amount if wait == 0.0 else level, now)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return wait


@dataclass
class KeyGuard:
    """Lets requests pass whose key is valid and does not come too often.

    by_key, by_address: the limits of valid keys, and of addresses that send none. current: makes
    the keys those of now, if another replica has changed them. client: the address that a request
    comes from.
    """

    keys: LedgerKeys
    by_key: RateLimiter
    by_address: RateLimiter
    current: Callable[[], Awaitable[None]]
    client: Callable[[types.Scope], str]

    async def authenticate(self, authorization: str, scope: types.Scope) -> Key:
        """The key in an Authorization header; 401 without a valid one, or 429.

        It may have been revoked by another replica in the meantime: see `require_valid`.
        """
        words = authorization.split()
        token = words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""
        key = self.keys.find(token)
        limiter = self.by_address if key is None else self.by_key
        wait = limiter.take(self.client(scope) if key is None else key.id)
        if wait > 0:
            raise too_many(f"more than {limiter.rate:g} requests a second.", wait)
        if key is None and token.startswith(PREFIX):  # another replica may have made it
            await self.current()
            key = self.keys.find(token)
        if key is None:
            raise _unauthorised()
        return key

    def require_valid(self, key: Key) -> None:
        """401 if the key has been revoked, as far as is known here."""
        if self.keys.by_digest(key.sha256) is None:
            raise _unauthorised()


def too_many(detail: str, wait: float) -> ProblemError:
    """429, with the seconds to wait."""
    return ProblemError(
        "too-many",
        detail,
        hint="wait, or send batches.",
        headers={"Retry-After": str(max(1, round(wait)))},
    )


def _unauthorised() -> ProblemError:
    return ProblemError(
        "unauthorised",
        "the request carries no valid API key.",
        hint="send Authorization: Bearer eh_...",
        headers={"WWW-Authenticate": "Bearer"},
    )


def require_scope(key: Key, scope: Scope) -> None:
    """403 without the scope."""
    if scope not in key.scopes:
        raise ProblemError(
            "forbidden", f"this needs the scope {scope!r}.", hint="ask an admin for such a key."
        )


class Sessions:
    """Who has logged in to the dashboard, on every replica: a signed cookie.

        cookie = hash of the key . end . nonce . HMAC(keyring, all of these)

    A session comes from a key with the scope "audit" and ends with it, after SESSION_SECONDS, or
    when its owner logs out, which the database remembers for all replicas.
    """

    def __init__(self, keys: LedgerKeys, ledger: Ledger) -> None:
        self._keys = keys
        self._ledger = ledger

    def begin(self, token: str) -> str | None:
        """The cookie of a new session, or None if the key may not audit."""
        key = self._keys.find(token)
        if key is None or "audit" not in key.scopes:
            return None
        parts = (key.sha256, str(int(time.time()) + SESSION_SECONDS), secrets.token_hex(16))
        return ".".join((*parts, self._seal(parts, self._ledger.keyring.active)))

    def is_open(self, cookie: str | None) -> bool:
        """Whether the session lasts and its key is valid; asks the database."""
        parts = self._parts(cookie)
        key = None if parts is None else self._keys.by_digest(parts[0])
        if parts is None or key is None or "audit" not in key.scopes:
            return False
        return not self._ledger.session_ended(_session(parts))

    def end(self, cookie: str | None) -> None:
        """Log out, on every replica."""
        parts = self._parts(cookie)
        if parts is not None:
            self._ledger.end_session(_session(parts), float(parts[1]))

    def _parts(self, cookie: str | None) -> tuple[str, ...] | None:
        *parts, seal = (cookie or "").split(".")
        keyring = self._ledger.keyring
        # another replica may have rotated the root; a root that was rotated away seals nothing
        seals = (self._seal(parts, root) for root in range(keyring.active, keyring.roots))
        known = any(hmac.compare_digest(seal.encode(), one.encode()) for one in seals)
        if len(parts) != 3 or not known:
            return None
        return tuple(parts) if int(parts[1]) > time.time() else None

    def _seal(self, parts: Sequence[str], root: int) -> str:
        return self._ledger.keyring.seal_of_root(root, "session", *parts).hex()


def _session(parts: Sequence[str]) -> bytes:
    return hashlib.sha256(".".join(parts).encode()).digest()


class PeopleOfProxy:
    """People whom an authenticating proxy in front has let in, by a header; off by default.

    The header is believed only on a connection from one of the proxy's own addresses, and only if
    it is there once. Such people may look at the dashboard, and nothing else.
    """

    def __init__(self, settings: Settings) -> None:
        self._header = (settings.proxy_header or "").lower().encode()
        self._networks = [ipaddress.ip_network(one) for one in settings.proxy_addresses]

    def lets_in(self, request: Request) -> bool:
        """Whether the person may see the dashboard."""
        if not self._header or not self.is_proxy(request.client.host if request.client else ""):
            return False
        names = [value for name, value in request.headers.raw if name == self._header]
        return len(names) == 1 and bool(names[0].strip())

    def client(self, scope: types.Scope) -> str:
        """Where a request comes from: the address of its connection, or what the proxy says."""
        address = str(scope["client"][0]) if scope.get("client") else "?"
        if self._networks and self.is_proxy(address):
            values = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            last = b",".join(values).decode("latin-1").rsplit(",", 1)[-1].strip()
            return last or address
        return address

    def is_proxy(self, address: str) -> bool:
        """Whether an address is one of the proxy's."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:  # no address: a socket of this machine, or a test
            return False
        return any(found in network for network in self._networks)
