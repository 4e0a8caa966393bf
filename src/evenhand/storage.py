"""Records and arrays as data, without pickle: a learner in one file, a state in one JSON document.

A learner's file is a zip of arrays (numpy's npz) whose first member is a JSON document:

    {"format": "evenhand learner", "version": 1, "protocol_version": 1, "learner": name,
     "hypotheses": ..., "settings": ..., "state": ..., "rounds": ..., "shell": ...}

state is the algorithm's record (sums, no people), rounds the table of decided people.

Nothing in the file is ever executed: only kinds of values that are listed here (or registered with
`storable`) can be written or made. Plain values are themselves; arrays go into a dictionary of
arrays, everything else becomes {"is": kind, ...}. A dataclass is written field by field and made by
its own constructor, so that impossible states cannot be loaded. Every number is finite: NaN and
infinity are neither written nor read.

The file is written beside its final place and then moved there, so that a crash leaves the old file
or the new one, never half of one. Each save has a mark of its own. A learner replaces a file only
if it has loaded or saved just this one: otherwise another learner went on from there, and its
people would be lost. No two processes look and replace at the same time (`_alone`).
"""

import base64
import json
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import Field, dataclass, field, fields, is_dataclass
from math import inf, isfinite
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.drift import DriftWatch, WatchedRule
from evenhand.algorithms.certified.evidence import Evidence, PastPeople
from evenhand.algorithms.certified.intervals import (
    AuditProcess,
    AuditTotals,
    BettingProcess,
    EpochRecord,
)
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.sample import CohortSample
from evenhand.algorithms.certified.state import CertifiedState, Guarantee, PlannedEpoch
from evenhand.algorithms.certified.tally import OpenCohorts, Tally
from evenhand.algorithms.exploration import ExplorationState, Slack
from evenhand.algorithms.two_phase import TwoPhaseState
from evenhand.bandit import PracticalSchedule, TheorySchedule
from evenhand.bounds import (
    AuditBinomial,
    AuditDkw,
    AuditHoeffding,
    AuditKl,
    BettingBound,
    BettingState,
    ClopperPearson,
    Dkw,
    EpochPlan,
    GroupJoin,
    JointHoeffding,
    PresetLooks,
)
from evenhand.contracts import Hypothesis, HypothesisClass, Json
from evenhand.errors import EvenhandError, NotSerialisable, ProtocolError, StorageError
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import ConstantOutcome, LogisticOutcome, TabularOutcome
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.fairness.certificate import (
    PROTOCOL_VERSION,
    CellCount,
    Certificate,
    CoveredFrom,
    DrawCount,
    GapInterval,
    OutsideCount,
)
from evenhand.fairness.delta_ledger import Booking, DeltaLedger
from evenhand.fairness.drift import ConstancyTest, DriftMonitor, Stream
from evenhand.hypotheses import FiniteClass, hypothesis_from_json
from evenhand.hypotheses.serialise import class_from_json, class_to_json
from evenhand.policies import Mixture
from evenhand.policies.mixture import models_apart, models_inside
from evenhand.rounds import Counts, Epoch, Rounds
from evenhand.schema import Column, Schema
from evenhand.tables.published import TABLES
from evenhand.words import LabelledSample, Prices

Record = TypeVar("Record")
StoredArray = NDArray[np.generic]
"""An array of numbers, truth values or texts."""
Plain = None | bool | int | float | str | Json
"""What a value is written as: itself, or an object that says its kind."""


class DataRecord(Protocol):
    """An object of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


COUNT = (0.0, inf)
PROBABILITY = (0.0, 1.0)
GAP = (-1.0, 1.0)
"""What the numbers of stored records can be."""

RECORDS: dict[str, type] = {
    record.__name__: record
    for record in (
        # settings
        *(FalsePositiveRate, FalseNegativeRate, SelectionRate),
        *(PracticalSchedule, TheorySchedule, JointHoeffding, Dkw, ClopperPearson),
        *(AuditHoeffding, AuditKl, AuditBinomial, AuditDkw, PresetLooks),
        *(Prices, Quota, Schema, Column),
        # people
        *(LabelledSample, RoundLog, Counts, Epoch),
        # sums and samples of a learner that keeps counts alone
        *(OpenCohorts, Tally, CohortSample, PastPeople),
        # states of algorithms
        *(TwoPhaseState, ExplorationState, Slack),
        *(CertifiedState, Guarantee, Evidence, EpochRecord, PlannedEpoch),
        *(BettingProcess, BettingBound, BettingState, EpochPlan, GroupJoin),
        *(AuditProcess, AuditTotals, AcceptedShares),
        *(ConstantOutcome, TabularOutcome, LogisticOutcome),
        *(DeltaLedger, Booking),
        *(DriftWatch, WatchedRule, DriftMonitor, ConstancyTest, Stream),
        *(Certificate, CellCount, CoveredFrom, DrawCount, GapInterval, OutsideCount),
    )
}
"""Every record that can be stored, by its name."""

RANGES: dict[str, Mapping[str, tuple[float, float]]] = {
    "BettingState": {
        "lower": PROBABILITY,
        "upper": PROBABILITY,
        "gap_lower": GAP,
        "gap_upper": GAP,
        "rounds": COUNT,
    },
    "AuditTotals": {
        "lower": GAP,
        "upper": GAP,
        "accepted": COUNT,
        "doubtful_accepted": COUNT,
        "people": COUNT,
        "doubtful": COUNT,
        "audits": COUNT,
        "look": COUNT,
    },
    "AcceptedShares": {
        "deltas": PROBABILITY,
        "lower": PROBABILITY,
        "upper": PROBABILITY,
        "people": COUNT,
        "most": COUNT,
        "least": COUNT,
    },
    "Evidence": dict.fromkeys(("people", "unknown", "accepted", "negatives", "unresolved"), COUNT),
    "Counts": {
        "acceptance": PROBABILITY,
        "rejected": COUNT,
        "positive": COUNT,
        "negative": COUNT,
        "unresolved": COUNT,
    },
}
"""Between which values the numbers of a field lie; a file in which they do not is an error."""


def stored_name(kind: type) -> str:
    """The name of a class in files: its own for those of evenhand; others may be called the same,
    so that they have their module's too.
    """
    own = kind.__module__.startswith("evenhand.")
    return kind.__name__ if own else f"{kind.__module__}.{kind.__qualname__}"


def storable(record: type[Record]) -> type[Record]:
    """Register a dataclass of your own, so that learners that hold one can be stored.

    Parameters
    ----------
    record : type
        The dataclass; its fields must be storable themselves.

    Returns
    -------
    type
        The dataclass itself, so that this is a decorator, too.

    Examples
    --------
    >>> @storable
    ... @dataclass(frozen=True)
    ... class Visit:
    ...     day: int
    >>> Encoder().encode(Visit(3))["fields"]
    {'day': 3}
    """
    RECORDS[stored_name(record)] = record
    return record


@dataclass(eq=False)
class Encoder:
    """Values -> JSON; arrays are gathered in `arrays`. The hypothesis class is written once, by
    whoever owns the encoder.
    """

    hypotheses: HypothesisClass | None = None
    arrays: dict[str, StoredArray] = field(default_factory=dict)

    def encode(self, value: object) -> Plain:
        """The JSON of a value; NotSerialisable where there is none."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if value is self.hypotheses:
            return {"is": "hypotheses"}
        known = RECORDS.get(stored_name(type(value))) is type(value)
        if known and is_dataclass(value) and not isinstance(value, type):
            return self.record(value)
        for kind, write in _WRITERS.items():
            if isinstance(value, kind):
                return write(self, value)
        raise NotSerialisable(
            f"{value!r} cannot be stored without pickle.",
            hint="use the settings that evenhand offers by name, or register your dataclass with "
            "evenhand.storage.storable.",
        )

    def record(self, value: "DataRecord") -> Json:
        """A registered dataclass, field by field."""
        stored = {one.name: self.encode(getattr(value, one.name)) for one in _kept(value)}
        return {"is": "record", "kind": stored_name(type(value)), "fields": stored}

    def sequence(self, kind: str, values: Iterable[object]) -> Json:
        """A collection, item by item."""
        return {"is": kind, "items": [self.encode(value) for value in values]}

    def array(self, value: StoredArray) -> Json:
        """An array; one of objects (groups of any kind) as numbers of its distinct values."""
        if value.dtype.kind == "O":
            items = value.tolist()
            seen = dict[tuple[type, Hashable], int]()
            try:
                codes = [seen.setdefault((type(item), item), len(seen)) for item in items]
            except TypeError:  # something that cannot be hashed
                return self.sequence("objects", items)
            distinct = self.sequence("objects", [item for _, item in seen])
            return distinct | {"codes": self.array(np.array(codes, dtype=np.int64))}
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        return {"is": "array", "name": name}

    def mapping(self, value: Mapping[Hashable, object]) -> Json:
        """Keys may be anything."""
        items = [[self.encode(key), self.encode(item)] for key, item in value.items()]
        return {"is": "dict", "items": items}

    def mixture(self, value: Mixture) -> Json:
        """Weights and rules."""
        rules = [self.hypothesis(rule) for rule in value.hypotheses]
        return {
            "is": "mixture",
            "rules": rules,
            "weights": list(value.weights),
            "group_use": value.group_use,
            **({} if value.schema is None else {"schema": self.encode(value.schema)}),
        }

    def hypothesis(self, value: Hypothesis) -> Json:
        """A rule's own JSON, or its number in a class that lists its members."""
        try:
            return {"is": "rule", "rule": value.to_json()}
        except NotSerialisable:
            listed = self.hypotheses.listed if isinstance(self.hypotheses, FiniteClass) else ()
            if value not in listed:
                raise
            return {"is": "member", "number": listed.index(value)}

    def generator(self, value: np.random.Generator) -> Json:
        """The state of a bit generator is a dictionary of whole numbers."""
        return {"is": "generator", "state": self.encode(value.bit_generator.state)}


_WRITERS: Mapping[type, Callable[[Encoder, Any], Json]] = {
    np.ndarray: Encoder.array,
    dict: Encoder.mapping,
    list: lambda encoder, value: encoder.sequence("list", value),
    tuple: lambda encoder, value: encoder.sequence("tuple", value),
    set: lambda encoder, value: encoder.sequence("set", sorted(value)),
    Mixture: Encoder.mixture,
    Rounds: lambda encoder, value: {
        "is": "rounds",
        "fields": encoder.mapping(value.to_fields()),
    },
    np.random.Generator: Encoder.generator,
    Hypothesis: Encoder.hypothesis,
}


_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, eq=False)
class Decoder:
    """JSON -> values, the inverse of `Encoder`."""

    arrays: Mapping[str, StoredArray]
    hypotheses: HypothesisClass | None = None

    def decode(self, data: Any) -> Any:
        """The value; StorageError where the data make no sense."""
        if not isinstance(data, dict):
            return data
        kind = str(data.get("is"))
        if kind not in _READERS:
            raise StorageError(
                f"the file holds a value of kind {kind!r}, which this version of evenhand does "
                "not know."
            )
        try:
            return _READERS[kind](self, data)
        except (StorageError, NotSerialisable):
            raise
        except (*_MALFORMED, EvenhandError) as error:
            raise StorageError(f"a stored value of kind {kind!r} is malformed: {error}") from error

    def items(self, data: Json) -> list[Any]:
        """The items of a collection."""
        return [self.decode(item) for item in data["items"]]

    def objects(self, data: Json) -> NDArray[np.object_]:
        """An array of objects; filled one by one, because numpy would take apart tuples. `codes`:
        each entry's number among the items.
        """
        items = self.items(data)
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = item
        return array if data.get("codes") is None else array[self.decode(data["codes"])]

    def record(self, data: Json) -> object:
        """By the constructor of the registered class."""
        kind = data["kind"]
        if kind not in RECORDS:
            raise StorageError(
                f"the file holds a {kind!r}, which is not registered.",
                hint="import its module first.",
            )
        decoded = {name: self.decode(value) for name, value in data["fields"].items()}
        for name, (low, high) in RANGES.get(kind, {}).items():
            value = np.asarray(decoded[name])
            if value.dtype.kind not in "iuf" or (value < low).any() or (value > high).any():
                raise StorageError(f"{name} of the stored {kind} leaves [{low:g}, {high:g}].")
        return RECORDS[kind](**decoded)

    def mixture(self, data: Json) -> Mixture:
        """Weights and rules."""
        return Mixture(
            tuple(self.decode(rule) for rule in data["rules"]),
            tuple(data["weights"]),
            data["group_use"],
            self.decode(data.get("schema")),
        )

    def member(self, data: Json) -> Hypothesis:
        """A rule by its number in the class."""
        if not isinstance(self.hypotheses, FiniteClass):
            raise StorageError(
                "the file refers to members of a FiniteClass, but the class that was given is none."
            )
        number: int = data["number"]
        return self.hypotheses.listed[number]

    def generator(self, data: Json) -> np.random.Generator:
        """A generator in the state in which it was stored."""
        state = self.decode(data["state"])
        if state["bit_generator"] not in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"):
            raise StorageError(f"{state['bit_generator']!r} is not a bit generator of numpy.")
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)


_READERS: Mapping[str, Callable[[Decoder, Json], object]] = {
    "array": lambda decoder, data: decoder.arrays[data["name"]],
    "objects": Decoder.objects,
    "dict": lambda decoder, data: {
        decoder.decode(key): decoder.decode(item) for key, item in data["items"]
    },
    "list": Decoder.items,
    "tuple": lambda decoder, data: tuple(decoder.items(data)),
    "set": lambda decoder, data: set(decoder.items(data)),
    "record": Decoder.record,
    "rounds": lambda decoder, data: Rounds.from_fields(decoder.decode(data["fields"])),
    "mixture": Decoder.mixture,
    "rule": lambda _, data: hypothesis_from_json(data["rule"]),
    "member": Decoder.member,
    "hypotheses": lambda decoder, _: decoder.hypotheses,
    "generator": Decoder.generator,
}


def _kept(record: "DataRecord") -> list[Field[Any]]:
    """The fields that the constructor takes."""
    return [one for one in fields(record) if one.init]


def array_to_json(array: StoredArray) -> Json:
    """An array as text: its bytes, compressed, in base 64."""
    plain = np.ascontiguousarray(array)
    data = base64.b64encode(zlib.compress(plain.tobytes(), 6)).decode()
    return {"kind": plain.dtype.str, "shape": list(plain.shape), "data": data}


def array_from_json(value: Json) -> StoredArray:
    """The inverse of `array_to_json`; StorageError where the text makes no sense."""
    try:
        kind = np.dtype(value["kind"])
        if kind.kind not in "biufU":
            raise StorageError(
                f"a stored array has the kind {value['kind']!r}, which is none of numbers or texts."
            )
        data = zlib.decompress(base64.b64decode(value["data"], validate=True))
        return np.frombuffer(data, dtype=kind).reshape(value["shape"]).copy()
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise StorageError(f"a stored array is malformed: {error}") from error


def not_finite(data: object, arrays: Mapping[str, StoredArray], path: str) -> str | None:
    """The first number in encoded data that is NaN or infinite, with its place: "state._now is
    nan"; None if all are finite.
    """
    if isinstance(data, float):
        return None if isfinite(data) else f"{path} is {data}"
    if isinstance(data, dict) and data.get("is") == "array":
        array = arrays.get(str(data.get("name")), np.zeros(0))
        bad = array[~np.isfinite(array)] if array.dtype.kind in "fc" else array[:0]
        return f"{path} contains {bad[0]}" if bad.size else None
    parts: list[tuple[str, object]] = []
    if isinstance(data, list):
        parts = [(f"{path}[{place}]", item) for place, item in enumerate(data)]
    elif isinstance(data, dict) and data.get("is") == "dict":
        for key, item in data["items"]:
            parts += [(f"{path}.{key}", item), (f"a key of {path}", key)]
    elif isinstance(data, dict):
        named = data["fields"] if data.get("is") == "record" else data
        parts = [(path if key == "items" else f"{path}.{key}", item) for key, item in named.items()]
    found = (not_finite(item, arrays, name) for name, item in parts)
    return next((bad for bad in found if bad is not None), None)


# a state alone, as JSON: what a service keeps with each policy


def state_to_json(state: object, hypotheses: HypothesisClass) -> Json:
    """The state of an algorithm as plain JSON: sums, intervals, bookings, and no people.

    Parameters
    ----------
    state : object
        What `step` returned.
    hypotheses : HypothesisClass
        The class of the algorithm.

    Returns
    -------
    dict
        `state_from_json` reads it.
    """
    encoder = Encoder(hypotheses)
    encoded = encoder.encode(state)
    arrays = {name: array_to_json(array) for name, array in encoder.arrays.items()}
    return {"protocol_version": PROTOCOL_VERSION, "state": encoded, "arrays": arrays}


def state_from_json(document: Json, hypotheses: HypothesisClass) -> Any:
    """What `state_to_json` wrote.

    Parameters
    ----------
    document : dict
        The JSON.
    hypotheses : HypothesisClass
        The class of the algorithm.

    Returns
    -------
    object
        The state.

    Raises
    ------
    StorageError
        If the document makes no sense, or is of another version.
    """
    version = document.get("protocol_version")
    if version != PROTOCOL_VERSION:
        raise StorageError(
            f"the state is of protocol version {version!r}; this evenhand continues version "
            f"{PROTOCOL_VERSION}."
        )
    arrays = {name: array_from_json(data) for name, data in document["arrays"].items()}
    return Decoder(arrays, hypotheses).decode(document["state"])


# a learner in a file

FORMAT = "evenhand learner"
VERSION = 1
PARTS = ("settings", "state", "rounds", "shell")
_DOCUMENT = "document"
_MARK = "mark"
_RESTORE = "restore it from a copy."
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(ValueError, EOFError, KeyError, NotImplementedError, RuntimeError),
)
"""What zipfile and numpy raise for bytes that are no zip of arrays."""


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the learner's name and settings, the state of its algorithm, the table of
    rounds, and what the shell knows beside it (seed, coins, time, columns).
    """

    learner: str
    settings: Mapping[str, Any]
    state: Any
    rounds: Rounds
    shell: Mapping[str, Any]
    mark: str = ""
    """Of the save that was read."""


def write(path: str | os.PathLike[str], stored: Stored, known: Collection[str]) -> str:
    """Store, or NotSerialisable and the file untouched; ProtocolError if there is a file with
    another mark than the `known` ones. Returns the mark of this save.
    """
    hypotheses = stored.settings.get("hypotheses")
    known_class = None
    if hypotheses is not None:  # by its params a class that is given on loading is recognised
        try:
            data = class_to_json(hypotheses)
        except NotSerialisable as reason:
            data = {"kind": "given", "reason": str(reason)}
        known_class = {"class": data, "params": dict(hypotheses.params)}
    encoder = Encoder(hypotheses)
    models: dict[str, Json] = {}  # each once, however many policies it is in
    document: Json = {
        "format": FORMAT,
        "version": VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "learner": stored.learner,
        "hypotheses": known_class,
    }
    for part in PARTS:
        document[part] = models_apart(encoder.encode(getattr(stored, part)), models)
        bad_number = not_finite(document[part], encoder.arrays, part)
        if bad_number is not None:
            raise NotSerialisable(
                f"{bad_number}; every number of a stored learner is finite.",
                hint="something went wrong before: keep the older file, and report it if the "
                "learner is evenhand's own.",
            )
    document["models"] = models
    # write a neighbour, then move it into place
    final = Path(path)
    text = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    beside = final.with_name(f".{final.name}.{token_hex(4)}.tmp")
    mark = token_hex(16)
    own = {_DOCUMENT: text, _MARK: np.array(mark)}
    try:
        with beside.open("xb") as file:
            np.savez(file, allow_pickle=False, **own, **encoder.arrays)
            file.flush()
            os.fsync(file.fileno())
        with _alone(final):
            _require_known(final, known)
            os.replace(beside, final)
    finally:
        beside.unlink(missing_ok=True)
    return mark


def _require_known(path: Path, known: Collection[str]) -> None:
    """ProtocolError if the file at this path is none of those that the learner goes on from. An
    empty one holds nobody.
    """
    try:
        if path.stat().st_size == 0:
            return
    except FileNotFoundError:
        return
    way_out = "save under another path, or load the file and go on from there."
    try:
        with zipfile.ZipFile(path) as zipped, zipped.open(f"{_MARK}.npy") as member:
            mark = str(np.lib.format.read_array(member, allow_pickle=False))
    except _DAMAGE as error:
        raise ProtocolError(
            f"{path} is a file that this learner has neither loaded nor saved, and no stored "
            "learner; it is not replaced.",
            hint="save under another path, or take the file away.",
        ) from error
    if mark not in known:
        raise ProtocolError(
            f"{path} is not the file that this learner has loaded or saved last: another learner, "
            "perhaps in another process, has saved there, or another file was put in its place; "
            "to replace it would lose its people.",
            hint=way_out,
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Inside the `with`, no other process is about to replace the file at this path. A lock of the
    operating system, on a neighbour: it ends with the process that holds it, however that dies.
    """
    neighbour = path.with_name(f".{path.name}.lock")
    while True:
        with neighbour.open("ab") as file:
            _lock(file.fileno())
            # whoever held the lock before has removed the neighbour: then this one locks nothing
            try:
                current = os.path.samestat(os.fstat(file.fileno()), neighbour.stat())
            except FileNotFoundError:
                current = False
            if not current:
                continue
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps a file that is open
                    neighbour.unlink()
            return


def _lock(file: int) -> None:
    """Wait for the lock of an open file; closing the file ends it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def read(path: str | os.PathLike[str], hypotheses: HypothesisClass | None = None) -> Stored:
    """What `write` stored; `hypotheses` where the class itself could not be."""
    document, arrays = _contents(Path(path))
    try:
        parts = {part: models_inside(document[part], document["models"]) for part in PARTS}
        found = (not_finite(parts[part], arrays, part) for part in PARTS)
        bad_number = next((bad for bad in found if bad is not None), None)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageError(
            f"{path} is damaged: its document is malformed ({error}).", hint=_RESTORE
        ) from error
    if bad_number is not None:
        raise StorageError(
            f"{path} is no sound learner: {bad_number}; every stored number is finite.",
            hint=_RESTORE,
        )
    mark = str(arrays.pop(_MARK, ""))
    decoder = Decoder(arrays, _class_of(document["hypotheses"], hypotheses))
    decoded = {part: decoder.decode(parts[part]) for part in PARTS}
    return Stored(document["learner"], **decoded, mark=mark)


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
            f"hypotheses is {dict(given.params)}, but the learner was stored with "
            f"{document['params']}.",
            hint="pass the class with which the learner was made.",
        )
    return given


def _nothing_there(path: Path) -> StorageError:
    """There is no file; who asked for a table is told how to get one."""
    hint = "name a file that a learner's save() wrote; evenhand.read_table reads a table."
    if str(path) in TABLES:
        hint = f"{path} is a table: evenhand.read_table({str(path)!r}).encoded() reads it."
    return StorageError(
        f"there is no file {path}", requirement="load reads a learner that save() stored", hint=hint
    )


def _contents(path: Path) -> tuple[Json, dict[str, StoredArray]]:
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
        data = json.loads(bytes(arrays.pop(_DOCUMENT)).decode())
    except StorageError:
        raise
    except FileNotFoundError as error:
        raise _nothing_there(path) from error
    except _DAMAGE as error:
        raise StorageError(
            f"{path} is damaged or no stored learner: {error}", hint=_RESTORE
        ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StorageError(
            f"{path} is no stored learner; its format is "
            f"{getattr(data, 'get', lambda _: None)('format')!r}."
        )
    document: Json = data
    versions = (document.get("version"), document.get("protocol_version"))
    if versions != (VERSION, PROTOCOL_VERSION):
        raise StorageError(
            f"{path} was written in version {versions[0]!r} of the format, protocol version "
            f"{versions[1]!r}; this evenhand reads versions {VERSION} and {PROTOCOL_VERSION}.",
            hint="load it with the evenhand that wrote it.",
        )
    missing = {"learner", "hypotheses", "models", *PARTS} - document.keys()
    if missing:
        raise StorageError(f"{path} is damaged: its document lacks {', '.join(sorted(missing))}.")
    return document, arrays
