"""API keys: who may do what, and how often.

A key is 256 random bits, shown once and stored as its SHA-256 with a tenant and scopes. It cannot
be guessed from its hash, so the hash needs neither salt nor stretching.
"""

import hashlib
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, cast, get_args

from starlette.requests import Request

from evenhand.errors import InvalidInput
from evenhand.ledger import require_name
from evenhand.service.problems import ProblemError

Scope = Literal["decide", "observe", "audit", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
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


class KeyStore:
    """The API keys of all tenants, in a file that only its owner can read.

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

    def __len__(self) -> int:
        self._refresh()
        return len(self._keys)

    def add(self, tenant: str, scopes: Iterable[str], name: str = "") -> str:
        """Make a key.

        Parameters
        ----------
        tenant : str
            Whose data the key opens.
        scopes : iterable of str
            What it may do: some of `SCOPES`.
        name : str
            What the key is for, in words.

        Returns
        -------
        str
            The token. It is not stored, so it cannot be shown again.

        Raises
        ------
        InvalidInput
            If there is no scope, or an unknown one.
        """
        require_name("tenant", tenant)
        token = PREFIX + secrets.token_urlsafe(32)
        digest = _digest(token)
        key = Key(digest[:12], tenant, _checked_scopes(scopes), digest, name)
        with self._lock:
            self._read()
            self._keys = {**self._keys, digest: key}
            self._write()
        return token

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Revoke a key: from now on it opens nothing.

        Parameters
        ----------
        tenant : str
            Whose key.
        key_id : str
            The `id` of the key.

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
    """Lets requests pass whose key is valid, has the scope, and does not come too often.

    by_key, by_address: the limits of valid keys, and of addresses that send none.
    """

    keys: KeyStore
    by_key: RateLimiter
    by_address: RateLimiter

    def require(self, request: Request, scope: Scope) -> Key:
        """The key of a request; 401 without a valid one, 403 without the scope, or 429."""
        words = request.headers.get("authorization", "").split()
        key = self.keys.find(words[1]) if len(words) == 2 and words[0].lower() == "bearer" else None
        limiter = self.by_address if key is None else self.by_key
        wait = limiter.take(address_of(request) if key is None else key.id)
        if wait > 0:
            raise ProblemError(
                "too-many",
                f"more than {limiter.rate:g} requests a second.",
                hint="wait, or send batches.",
                headers={"Retry-After": str(max(1, round(wait)))},
            )
        if key is None:
            raise ProblemError(
                "unauthorised",
                "the request carries no valid API key.",
                hint="send Authorization: Bearer eh_...",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if scope not in key.scopes:
            raise ProblemError(
                "forbidden", f"this needs the scope {scope!r}.", hint="ask an admin for such a key."
            )
        return key


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else "?"


class Sessions:
    """Who has logged in to the dashboard, by a random name; lost with the process, on purpose.

    A session comes from a key with the scope "audit" and ends with it.
    """

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys
        self._open: dict[str, tuple[str, float]] = {}

    def begin(self, token: str) -> str | None:
        """The name of a new session, or None if the key may not audit."""
        key = self._keys.find(token)
        if key is None or "audit" not in key.scopes:
            return None
        now = time.time()
        self._open = {name: entry for name, entry in self._open.items() if entry[1] > now}
        name = secrets.token_urlsafe(32)
        self._open[name] = (key.sha256, now + SESSION_SECONDS)
        return name

    def tenant(self, name: str | None) -> str | None:
        """Whose session it is, while it lasts and its key is valid."""
        digest, end = self._open.get(name or "", ("", 0.0))
        key = self._keys.by_digest(digest) if end > time.time() else None
        return None if key is None or "audit" not in key.scopes else key.tenant

    def end(self, name: str | None) -> None:
        """Log out."""
        self._open.pop(name or "", None)
