"""Export for auditors: one JSON line per row of the chain, with the personal fields that they may see, and the salts that prove them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from evenhand.canonical import canonical, join_object
from evenhand.contracts import Json
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.refusals import Invalid
from evenhand.ledger.sealing import open_fields
from evenhand.ledger.verifier import FORMAT
from evenhand.ledger.verifying import Stored, chain_rows, personal_rows

FIELDS = ("who", "features", "group", "reply")


def export(ledger: Ledger, path: str | os.PathLike[str], *, opened: tuple[str, ...] = ("who",)) -> int:
    """Write the whole chain; how many rows. `opened`: "who" (needed to recompute draws), "features", "group", "reply"."""
    unknown = set(opened) - set(FIELDS)
    if unknown:
        raise Invalid(f"{', '.join(sorted(unknown))} cannot be opened; the fields are {', '.join(FIELDS)}.")
    rows = 0
    with Path(path).open("w", encoding="utf-8") as file:
        file.write(canonical({"format": FORMAT}) + "\n")
        for line in _lines(ledger, opened):
            file.write(line + "\n")
            rows += 1
    return rows


def _lines(ledger: Ledger, opened: tuple[str, ...]) -> Iterator[str]:
    with ledger.store.reader.connect() as connection, connection.begin():
        beside = personal_rows(connection)
        for seq, kind, row in chain_rows(connection):
            at, body, digest = row[1], row[-2], bytes(row[-1]).hex()
            line = {"at": repr(at), "body": body, "hash": f'"{digest}"', "kind": f'"{kind}"'}
            if "sealed" in json.loads(body):
                line["open"] = canonical(_proofs(ledger.keyring, next(beside), opened))
            yield join_object(line | {"seq": str(seq)})


def _proofs(keyring: Keyring, row: Stored, names: tuple[str, ...]) -> Json:
    _, sealed, wrapped = row
    if sealed is None:
        return {}
    opened = open_fields(keyring.unwrap(wrapped), sealed)
    return {name: opened.proof(name) for name in names if name in opened.fields}
