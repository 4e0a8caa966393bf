"""Personal fields: as salted commitments in the chain, as sealed text beside it.

    commit[name] = SHA-256(salt of the field | canonical value)

The text {"fields": ..., "salts": ...} is sealed under the person's own key; when that key is destroyed, salts and values are gone, and the
commitments say nothing any more. Each field has a salt of its own, so that one can be opened without its neighbours.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from evenhand.canonical import canonical, join_object
from evenhand.contracts import Json
from evenhand.ledger.keyring import Entropy, fingerprint, seal, unseal
from evenhand.ledger.refusals import Damaged

_SALT = 16


class Sealed(NamedTuple):
    """What the chain keeps (`commit`, `fingerprint`) and what lies beside it (`data`)."""

    commit: dict[str, str]
    fingerprint: str
    data: bytes


def seal_fields(key: bytes, texts: dict[str, str], entropy: Entropy) -> Sealed:
    """Commit to each field, and seal all of them; `texts` are their canonical JSON, in the order of their names."""
    random, salts, commit = entropy(_SALT * len(texts)), {}, {}
    for place, (name, text) in enumerate(texts.items()):
        salt = random[place * _SALT : (place + 1) * _SALT]
        salts[name] = f'"{salt.hex()}"'
        commit[name] = commitment(salt, text)
    data = seal(key, join_object({"fields": join_object(texts), "salts": join_object(salts)}).encode(), entropy)
    return Sealed(commit, fingerprint(data), data)


def commitment(salt: bytes, text: str) -> str:
    """SHA-256(salt of the field | canonical JSON of its value), in hexadecimal."""
    return sha256(salt + text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Opened:
    """The fields in the clear, and the salts that prove them."""

    fields: Json
    salts: dict[str, str]

    def proof(self, name: str) -> Json:
        """One field with its salt, for an auditor."""
        return {"salt": self.salts[name], "value": self.fields[name]}

    def mismatches(self, commit: dict[str, str]) -> list[str]:
        """Fields that are not what was committed to."""
        names = sorted(self.fields.keys() | commit.keys())
        return [name for name in names if name not in self.fields or not self._matches(name, commit)]

    def _matches(self, name: str, commit: dict[str, str]) -> bool:
        return commitment(bytes.fromhex(self.salts[name]), canonical(self.fields[name])) == commit.get(name)


def open_fields(key: bytes, data: bytes) -> Opened:
    """What `seal_fields` sealed."""
    document: Any = json.loads(unseal(key, data))
    try:
        return Opened(document["fields"], document["salts"])
    except (KeyError, TypeError):
        raise Damaged("a sealed field opens to something that this ledger did not write.") from None
