"""Personal fields: as salted commitments in the chain, as sealed text beside it.

    commit[name] = SHA-256(salt of the field | canonical value)

The text {"fields": ..., "salts": ...} is sealed under the person's own key; when that key is destroyed, salts and values are gone, and the
commitments say nothing any more. Each field has a salt of its own, so that one can be opened without its neighbours.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from evenhand.contracts import Json
from evenhand.ledger.keyring import Entropy, fingerprint, seal, unseal
from evenhand.ledger.refusals import Damaged
from evenhand.ledger.verifier import canonical, commitment

_SALT = 16


class Sealed(NamedTuple):
    """What the chain keeps (`commit`, `fingerprint`) and what lies beside it (`data`)."""

    commit: dict[str, str]
    fingerprint: str
    data: bytes


def seal_fields(key: bytes, fields: Json, entropy: Entropy) -> Sealed:
    """Commit to each field, and seal all of them."""
    return seal_texts(key, {name: canonical(value) for name, value in sorted(fields.items())}, entropy)


def seal_texts(key: bytes, texts: dict[str, str], entropy: Entropy) -> Sealed:
    """The same from the canonical texts of the fields, in the order of their names."""
    random = entropy(_SALT * len(texts))
    salts = [random[place : place + _SALT] for place in range(0, len(random), _SALT)]
    pairs = list(zip(texts.items(), salts, strict=True))
    commit = {name: sha256(salt + text.encode()).hexdigest() for (name, text), salt in pairs}
    fields = ",".join([f'"{name}":{text}' for name, text in texts.items()])
    kept = ",".join([f'"{name}":"{salt.hex()}"' for (name, _), salt in pairs])
    data = seal(key, f'{{"fields":{{{fields}}},"salts":{{{kept}}}}}'.encode(), entropy)
    return Sealed(commit, fingerprint(data), data)


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
        return commitment(bytes.fromhex(self.salts[name]), self.fields[name]) == commit.get(name)


def open_fields(key: bytes, data: bytes) -> Opened:
    """What `seal_fields` sealed."""
    document: Any = json.loads(unseal(key, data))
    try:
        return Opened(document["fields"], document["salts"])
    except (KeyError, TypeError):
        raise Damaged("a sealed field opens to something that this ledger did not write.") from None
