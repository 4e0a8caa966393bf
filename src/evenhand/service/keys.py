"""API keys, sessions, and people behind a proxy: who may do what, and how often.

A key is 256 random bits, shown once and stored as its SHA-256 with a tenant and scopes. It cannot
be guessed from its hash, so the hash needs neither salt nor stretching. Keys are rows of the chain:
created, and perhaps revoked. The head of the chain names the newest such row, so that every replica
knows whether it has seen all of them.
"""

import hashlib
import hmac
import ipaddress
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, cast, get_args

from starlette import types
from starlette.requests import Request

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.ledger import Damaged, Event, Ledger, require_name
from evenhand.ledger.history import seal_of_keys
from evenhand.ledger.ledger import KeyChange
from evenhand.service.problems import ProblemError
from evenhand.service.settings import Settings

Scope = Literal["decide", "observe", "audit", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a key may be allowed to do."""
PREFIX = "eh_"
SESSION_SECONDS = 8 * 3600


@dataclass(frozen=True)
class Key:
    """What is stored of a key; `id` is the beginning of its hash and may be shown."""

    id: str
    tenant: str
    scopes: frozenset[Scope]
    sha256: str
    name: str = ""
    revoked: bool = False


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _checked_scopes(names: Iterable[str]) -> frozenset[Scope]:
    scopes = frozenset(names)
    if not scopes or not scopes <= set(SCOPES):
        raise InvalidInput(f"a key needs some of the scopes {', '.join(SCOPES)}.")
    return cast(frozenset[Scope], scopes)


def _new_key(tenant: str, scopes: Iterable[str], name: str) -> tuple[str, Key]:
    """A token, and what is stored of it."""
    require_name("tenant", tenant)
    if name:
        require_name("the name of a key", name)
    token = PREFIX + secrets.token_urlsafe(32)
    digest = _digest(token)
    return token, Key(digest[:12], tenant, _checked_scopes(scopes), digest, name)


class KeyStore:
    """API keys in memory, or in the file in which they were kept before they were in the ledger.

    `LedgerKeys` has the same methods, and is what the service uses.

    Parameters
    ----------
    path : Path or None
        The file; a change by another process is noticed. None keeps the keys in memory.

    Examples
    --------
    >>> keys = KeyStore(None)
    >>> token = keys.add("bank", ["decide"], "web shop")
    >>> key = keys.find(token)
    >>> key.tenant, key.name, sorted(key.scopes)
    ('bank', 'web shop', ['decide'])
    >>> keys.revoke("bank", key.id), keys.find(token)
    (True, None)
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int] | None = None

    def find(self, token: str) -> Key | None:
        """Return the key behind a token.

        The time that this takes tells nothing about the token, because its hash is looked up.

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
        self._refresh()
        key = self._keys.get(digest)
        return None if key is None or key.revoked else key

    def all(self, tenant: str) -> list[Key]:
        """Return the keys of a tenant, revoked ones too.

        Parameters
        ----------
        tenant : str
            Whose keys.

        Returns
        -------
        list of Key
            In the order in which they were made.
        """
        self._refresh()
        return [key for key in self._keys.values() if key.tenant == tenant]

    def refresh(self) -> None:
        """Take up what another process has changed."""
        self._refresh()

    def __len__(self) -> int:
        self._refresh()
        return len(self._keys)

    def add(self, tenant: str, scopes: Iterable[str], name: str = "", by: str = "") -> str:
        """Make a key.

        Parameters
        ----------
        tenant : str
            Whose data the key opens.
        scopes : iterable of str
            What it may do: some of `SCOPES`.
        name : str
            What the key is for, in words.
        by : str
            Who makes it; the ledger records it.

        Returns
        -------
        str
            The token. It is not stored, so it cannot be shown again.

        Raises
        ------
        InvalidInput
            If there is no scope, or an unknown one.
        """
        token, key = _new_key(tenant, scopes, name)
        with self._lock:
            self._read()
            self._keys = {**self._keys, key.sha256: key}
            self._write()
        return token

    def revoke(self, tenant: str, key_id: str, by: str = "") -> bool:
        """Revoke a key: from now on it opens nothing.

        Parameters
        ----------
        tenant : str
            Whose key.
        key_id : str
            The `id` of the key.
        by : str
            Who revokes it; the ledger records it.

        Returns
        -------
        bool
            Whether the tenant has such a key.
        """
        with self._lock:
            self._read()
            mine = [k for k in self._keys.values() if (k.tenant, k.id) == (tenant, key_id)]
            self._keys = {**self._keys, **{k.sha256: replace(k, revoked=True) for k in mine}}
            self._write()
        return bool(mine)

    # the file

    def _refresh(self) -> None:
        if self._path is not None and self._stamp_of_file() != self._stamp:
            with self._lock:
                self._read()

    def _stamp_of_file(self) -> tuple[int, int] | None:
        try:
            status = os.stat(cast(Path, self._path))
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino

    def _read(self) -> None:
        if self._path is None or not self._path.exists():
            return
        self._stamp = self._stamp_of_file()
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))["keys"]
            keys = [Key(**{**row, "scopes": _checked_scopes(row["scopes"])}) for row in rows]
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"{self._path} does not hold API keys.", hint="restore it from a backup."
            ) from None
        self._keys = {key.sha256: key for key in keys}

    def _write(self) -> None:
        if self._path is None:
            return
        rows = [{**asdict(key), "scopes": sorted(key.scopes)} for key in self._keys.values()]
        beside = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.tmp")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"keys": rows}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path)
        self._stamp = self._stamp_of_file()


class LedgerKeys(KeyStore):
    """The API keys of all tenants, in the chain of the ledger.

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
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     keys = LedgerKeys(ledger)
    ...     key = keys.find(keys.add("bank", ["decide"], "web shop", by="Ada"))
    ...     keys.revoke("bank", key.id, by="Ada"), [e.action for e in ledger.key_events()]
    (True, ['key_created', 'key_revoked'])
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(None)
        self._ledger, self._upto = ledger, 0
        self._rotations: list[Event] = []
        events = ledger.key_events()
        self._require_sealed(events)
        self._take_up(events)

    def refresh(self) -> None:
        """Take up what was created and revoked since."""
        self._take_up(self._ledger.key_events(self._upto))

    def add(self, tenant: str, scopes: Iterable[str], name: str = "", by: str = "") -> str:
        """Make a key; it opens every replica when this returns.

        Parameters
        ----------
        tenant, scopes, name, by
            As in `KeyStore.add`.

        Returns
        -------
        str
            The token, which is stored nowhere.
        """
        token, key = _new_key(tenant, scopes, name)
        self._change(lambda _: [self._created(key, by)])
        return token

    def revoke(self, tenant: str, key_id: str, by: str = "") -> bool:
        """Revoke a key; it opens no replica when this returns.

        Parameters
        ----------
        tenant, key_id, by
            As in `KeyStore.revoke`.

        Returns
        -------
        bool
            Whether the tenant has such a key.
        """

        def change(keys: Mapping[str, Key]) -> list[KeyChange]:
            mine = [k for k in keys.values() if (k.tenant, k.id) == (tenant, key_id)]
            return [_revoked(key, by) for key in mine if not key.revoked]

        self._change(change)
        return any(key.id == key_id for key in self.all(tenant))

    def first(self, tenants: Iterable[str], by: str) -> dict[str, str]:
        """Make one key with every scope for each tenant that has none.

        Parameters
        ----------
        tenants : iterable of str
            Whose keys.
        by : str
            Who makes them.

        Returns
        -------
        dict
            The token of each tenant that had none. Of several replicas that do this at once, one
            gets it.
        """
        new = {tenant: _new_key(tenant, SCOPES, "first") for tenant in tenants}

        def change(keys: Mapping[str, Key]) -> list[KeyChange]:
            have = {key.tenant for key in keys.values()}
            return [self._created(key, by) for _, key in new.values() if key.tenant not in have]

        self._change(change)
        return {t: token for t, (token, key) in new.items() if key.sha256 in self._keys}

    def take_over(self, other: KeyStore, by: str) -> int:
        """Take over the keys of a file, revoked ones too; a key that is known stays as it is.

        Parameters
        ----------
        other : KeyStore
            The keys as they were kept before.
        by : str
            Who takes them over.

        Returns
        -------
        int
            How many were new.
        """
        other.refresh()
        theirs = list(other._keys.values())
        before = len(self._keys)

        def change(keys: Mapping[str, Key]) -> list[KeyChange]:
            new = [key for key in theirs if key.sha256 not in keys]
            made = [self._created(key, by) for key in new]
            return made + [_revoked(key, by) for key in new if key.revoked]

        self._change(change)
        return len(self._keys) - before

    # rows of the chain

    def _change(self, change: Callable[[Mapping[str, Key]], list[KeyChange]]) -> None:
        with self._lock:
            upto, keys = self._upto, self._keys
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
            info, digest = event.info, str(event.info["sha256"])
            if event.action == "key_revoked" and digest in found:
                found[digest] = replace(found[digest], revoked=True)
            elif event.action == "key_created" and digest not in found:
                scopes = _checked_scopes(info["scopes"])
                key = Key(digest[:12], str(event.tenant), scopes, digest, info["name"])
                # nobody who can only write the database makes a key that opens, not even with a
                # root that was rotated away
                if hmac.compare_digest(
                    str(info["seal"]), self._seal(key, self._root_at(event.seq))
                ):
                    found[digest] = key
        return found

    def _created(self, key: Key, by: str) -> KeyChange:
        about: Json = {"id": key.id, "sha256": key.sha256, "name": key.name}
        sealed = self._seal(key, self._ledger.keyring.active)
        return "key_created", key.tenant, by, about | {"scopes": sorted(key.scopes), "seal": sealed}

    def _seal(self, key: Key, root: int) -> str:
        parts = (key.sha256, key.tenant, key.name, *sorted(key.scopes))
        return self._ledger.keyring.seal_of_root(root, "api key", *parts).hex()


def _revoked(key: Key, by: str) -> KeyChange:
    return "key_revoked", key.tenant, by, {"id": key.id, "sha256": key.sha256, "name": key.name}


@dataclass
class RateLimiter:
    """Token buckets: each name has `rate` requests a second, and `burst` at once. Beyond `most`
    names the one that was seen least recently is forgotten.
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    most: int = 10_000
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def take(self, name: str) -> float:
        """0 if the request is within the limit, else the seconds to wait."""
        now = self.clock()
        level, seen = self._levels.pop(name, (self.burst, now))
        level = min(self.burst, level + (now - seen) * self.rate)
        wait = 0.0 if level >= 1.0 else (1.0 - level) / self.rate
        self._levels[name] = (level - 1.0 if wait == 0.0 else level, now)
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

    keys: KeyStore
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
            raise ProblemError(
                "too-many",
                f"more than {limiter.rate:g} requests a second.",
                hint="wait, or send batches.",
                headers={"Retry-After": str(max(1, round(wait)))},
            )
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

    def __init__(self, keys: KeyStore, ledger: Ledger) -> None:
        self._keys, self._ledger = keys, ledger

    def begin(self, token: str) -> str | None:
        """The cookie of a new session, or None if the key may not audit."""
        key = self._keys.find(token)
        if key is None or "audit" not in key.scopes:
            return None
        parts = (key.sha256, str(int(time.time()) + SESSION_SECONDS), secrets.token_hex(16))
        return ".".join((*parts, self._seal(parts, self._ledger.keyring.active)))

    def tenant(self, cookie: str | None) -> str | None:
        """Whose session it is, while it lasts and its key is valid; asks the database."""
        parts = self._parts(cookie)
        key = None if parts is None else self._keys.by_digest(parts[0])
        if parts is None or key is None or "audit" not in key.scopes:
            return None
        return None if self._ledger.session_ended(_session(parts)) else key.tenant

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
    it is there once. Such people may look at the dashboard of one tenant, and nothing else.
    """

    def __init__(self, settings: Settings) -> None:
        self._header = (settings.proxy_header or "").lower().encode()
        self._networks = [ipaddress.ip_network(one) for one in settings.proxy_addresses]
        self._tenant = settings.proxy_tenant or settings.products[0].tenant

    def tenant(self, request: Request) -> str | None:
        """Whose dashboard the person may see, or None."""
        if not self._header or not self.is_proxy(request.client.host if request.client else ""):
            return None
        names = [value for name, value in request.headers.raw if name == self._header]
        return self._tenant if len(names) == 1 and names[0].strip() else None

    def client(self, scope: types.Scope) -> str:
        """Where a request comes from: the address of its connection, or what the proxy says."""
        address = str(scope["client"][0]) if scope.get("client") else "?"
        if self._networks and self.is_proxy(address):
            told = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            last = b",".join(told).decode("latin-1").rsplit(",", 1)[-1].strip()
            return last or address
        return address

    def is_proxy(self, address: str) -> bool:
        """Whether an address is one of the proxy's."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:  # no address: a socket of this machine, or a test
            return False
        return any(found in network for network in self._networks)
