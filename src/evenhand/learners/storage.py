"""A learner in one file: a zip of arrays (numpy's npz) whose first member is a JSON document;
nothing in it is ever executed.

    {"format": "evenhand learner", "version": 2, "rules": 2, "learner": name, "hypotheses": ..., "settings": ..., "state": ...}

version: how it is written; rules: the law under which the learner lived (docs/promise-proof.md).

The file is written beside its final place and then moved there, so that a crash leaves the old file
or the new one, never half of one.
"""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import HypothesisClass, Json
from evenhand.errors import NotSerialisable, StorageError
from evenhand.fairness.certificate import RULES
from evenhand.hypotheses.serialise import class_from_json, class_to_json
from evenhand.learners.codec import Decoder, Encoder, not_finite

FORMAT = "evenhand learner"
VERSION = 3
_DOCUMENT = "document"
_RESTORE = "restore it from a copy."
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
)
"""What zipfile and numpy raise for bytes that are no zip of arrays."""


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the learner's name, its settings, and its state.

    rules: those under which it was written. A state that cannot be taken over as it is (any of
    rules 1, a certified learner's of rules 2) is left as it was encoded; `decoder` reads it.
    """

    learner: str
    settings: Mapping[str, Any]
    state: Mapping[str, Any]
    rules: int = RULES
    decoder: Decoder | None = None


def write(path: str | os.PathLike[str], stored: Stored) -> None:
    """Store, or NotSerialisable and the file untouched."""
    hypotheses = stored.settings.get("hypotheses")
    encoder = Encoder(hypotheses)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "rules": RULES,
        "learner": stored.learner,
        "hypotheses": None if hypotheses is None else _class_document(hypotheses),
        "settings": encoder.encode(dict(stored.settings)),
        "state": encoder.encode(dict(stored.state)),
    }
    for part in ("settings", "state"):
        if (found := not_finite(document[part], encoder.arrays, part)) is not None:
            raise NotSerialisable(
                f"{found}; every number of a stored learner is finite.",
                hint="something went wrong before: keep the older file, and report it if the learner is evenhand's own.",
            )
    _replace(
        Path(path), np.frombuffer(json.dumps(document).encode(), dtype=np.uint8), encoder.arrays
    )


def read(path: str | os.PathLike[str], hypotheses: HypothesisClass | None = None) -> Stored:
    """What `write` stored; `hypotheses` where the class itself could not be."""
    document, arrays = _contents(Path(path))
    try:
        parts = (not_finite(document[part], arrays, part) for part in ("settings", "state"))
        found = next((bad for bad in parts if bad is not None), None)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageError(
            f"{path} is damaged: its document is malformed ({error}).", hint=_RESTORE
        ) from error
    if found is not None:
        raise StorageError(
            f"{path} is no sound learner: {found}; every stored number is finite.", hint=_RESTORE
        )
    decoder = Decoder(arrays, _class_of(document["hypotheses"], hypotheses))
    settings = decoder.decode(document["settings"])
    rules = document.get("rules", 1)
    if rules < RULES:
        encoded = dict(document["state"]["items"])
        if rules == 1 or "_life" in encoded:
            return Stored(document["learner"], settings, encoded, rules, decoder)
    return Stored(document["learner"], settings, decoder.decode(document["state"]), rules)


def _class_document(hypotheses: HypothesisClass) -> Json:
    """The class, and its params, by which a class that is given on loading is recognised."""
    try:
        stored = class_to_json(hypotheses)
    except NotSerialisable as reason:
        stored = {"kind": "given", "reason": str(reason)}
    return {"class": stored, "params": dict(hypotheses.params)}


def _class_of(document: Json | None, given: HypothesisClass | None) -> HypothesisClass | None:
    if document is None:
        return None
    if given is None:
        if document["class"]["kind"] == "given":
            raise NotSerialisable(
                f"the file does not hold the hypothesis class: {document['class']['reason']}",
                hint="pass the same class again: load(path, hypotheses=...).",
            )
        given = class_from_json(document["class"])
    if json.loads(json.dumps(dict(given.params))) != document["params"]:
        raise StorageError(
            f"hypotheses is {dict(given.params)}, but the learner was stored with {document['params']}.",
            hint="pass the class with which the learner was made.",
        )
    return given


def _replace(path: Path, document: NDArray[np.uint8], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a neighbour, then move it into place."""
    beside = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            np.savez(file, allow_pickle=False, **{_DOCUMENT: document}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _contents(path: Path) -> tuple[Json, dict[str, NDArray[Any]]]:
    """The document and all arrays, both checked against the checksums of the zip."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                raise StorageError(
                    f"{path} is not a stored learner: it is no zip of arrays.",
                    hint="save() makes such files.",
                )
            with zipfile.ZipFile(file) as zipped:
                if (damaged := zipped.testzip()) is not None:
                    raise StorageError(
                        f"{path} is damaged: the checksum of {damaged} is wrong.", hint=_RESTORE
                    )
            file.seek(0)
            with np.load(file, allow_pickle=False) as members:
                arrays = {name: members[name] for name in members.files}
        document = json.loads(bytes(arrays.pop(_DOCUMENT)).decode())
    except StorageError:
        raise
    except _DAMAGE as error:
        raise StorageError(
            f"{path} is damaged or no stored learner: {error}", hint=_RESTORE
        ) from error
    return _known_document(document, path), arrays


def _known_document(found: Any, path: Path) -> Json:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StorageError(
            f"{path} is no stored learner; its format is {getattr(found, 'get', lambda _: None)('format')!r}."
        )
    document: Json = found
    written = (document.get("version"), document.get("rules"))
    if written not in ((VERSION, RULES), (2, 2), (1, None)):
        raise StorageError(
            f"{path} was written in version {document.get('version')!r} of the format, under rules {document.get('rules')!r}; "
            f"this evenhand reads version {VERSION}, rules {RULES}.",
            hint="load it with the evenhand that wrote it.",
        )
    missing = {"learner", "hypotheses", "settings", "state"} - document.keys()
    if missing:
        raise StorageError(f"{path} is damaged: its document lacks {', '.join(sorted(missing))}.")
    return document
