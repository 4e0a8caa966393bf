"""API keys: 256 random bits each, shown once, stored as their SHA-256 with a tenant and scopes.

A key that is drawn from 2^256 cannot be guessed from its hash, so the hash needs neither salt nor
stretching.
"""

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, cast, get_args

from evenhand.errors import InvalidInput
from evenhand.ledger import require_name

Scope = Literal["decide", "observe", "audit", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "eh_"


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


def _scopes(names: Iterable[str]) -> frozenset[Scope]:
    found = frozenset(names)
    if not found or not found <= set(SCOPES):
        raise InvalidInput(f"a key needs some of the scopes {', '.join(SCOPES)}.")
    return cast(frozenset[Scope], found)


class KeyStore:
    """Keys in a file that only its owner can read; a change of the file (by another replica) is
    noticed.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int] | None = None

    def find(self, token: str) -> Key | None:
        """The key behind a token, unless it is unknown or revoked.

        Looking up a hash tells nothing about the token by its time.
        """
        return self.by_digest(_digest(token))

    def by_digest(self, digest: str) -> Key | None:
        """The same by the stored hash: what a session remembers."""
        self._refresh()
        key = self._keys.get(digest)
        return None if key is None or key.revoked else key

    def all(self, tenant: str) -> list[Key]:
        """The keys of a tenant, revoked ones too."""
        self._refresh()
        return [key for key in self._keys.values() if key.tenant == tenant]

    def __len__(self) -> int:
        self._refresh()
        return len(self._keys)

    def add(self, tenant: str, scopes: Iterable[str], name: str = "") -> str:
        """Make a key; the token is returned here and never again."""
        require_name("tenant", tenant)
        token = PREFIX + secrets.token_urlsafe(32)
        digest = _digest(token)
        with self._lock:
            self._read()
            self._keys = {
                **self._keys,
                digest: Key(digest[:12], tenant, _scopes(scopes), digest, name),
            }
            self._write()
        return token

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Whether there was such a key; from now on it opens nothing."""
        with self._lock:
            self._read()
            found = [k for k in self._keys.values() if (k.tenant, k.id) == (tenant, key_id)]
            self._keys = {**self._keys, **{k.sha256: replace(k, revoked=True) for k in found}}
            self._write()
        return bool(found)

    # the file

    def _refresh(self) -> None:
        if self._path is None or self._stamp_of() == self._stamp:
            return
        with self._lock:
            self._read()

    def _stamp_of(self) -> tuple[int, int] | None:
        try:
            found = os.stat(cast(Path, self._path))
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> None:
        if self._path is None or not self._path.exists():
            return
        self._stamp = self._stamp_of()
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))["keys"]
            keys = [Key(**{**row, "scopes": _scopes(row["scopes"])}) for row in rows]
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
        self._stamp = self._stamp_of()
