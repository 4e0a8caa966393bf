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
or the new one, never half of one. A mark says what is in it. A learner replaces a file only if it
has loaded or saved just this one, or would write the same: otherwise another learner went on from
there, and its people would be lost. No two processes look and replace at the same time (`_alone`).
"""

import base64
import json
import os
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from dataclasses import Field, dataclass, field, fields, is_dataclass
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from math import inf, isfinite
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.drift import DriftWatch, WatchedRule
from evenhand.algorithms.certified.evidence import Evidence, PastPeople
from evenhand.algorithms.certified.intervals import BettingProcess, EpochRecord
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.sample import ClosedRounds, CohortSample, KeptCounts
from evenhand.algorithms.certified.state import CertifiedState, Guarantee, PlannedEpoch
from evenhand.algorithms.certified.tally import OpenCohorts, Tally
from evenhand.algorithms.exploration import ExplorationState, Slack
from evenhand.algorithms.two_phase import TwoPhaseState
from evenhand.bandit import PracticalSchedule, TheorySchedule
from evenhand.bounds import (
    BettingBound,
    BettingState,
    ClopperPearson,
    Dkw,
    EpochPlan,
    GroupJoin,
    JointHoeffding,
)
from evenhand.contracts import Hypothesis, HypothesisClass, Json, ReadsRules
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
    Suspension,
)
from evenhand.fairness.delta_ledger import Booking, DeltaLedger
from evenhand.fairness.drift import ConstancyTest, DriftMonitor, Stream
from evenhand.hypotheses import FiniteClass
from evenhand.hypotheses.constants import Unread
from evenhand.hypotheses.models import UnreadableModel
from evenhand.hypotheses.serialise import (
    HYPOTHESES,
    class_from_json,
    class_to_json,
    rule_from_json,
)
from evenhand.policies import Mixture
from evenhand.policies.mixture import models_apart, models_inside
from evenhand.rounds import Counts, Epoch, Rounds
from evenhand.rounds.stored import from_fields, to_fields
from evenhand.schema import Column, Schema
from evenhand.words import IntArray, LabelledSample, Prices

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
        *(Prices, Quota, Schema, Column),
        # people
        *(LabelledSample, RoundLog, Counts, Epoch),
        # sums and samples of a learner that keeps counts alone
        *(KeptCounts, OpenCohorts, Tally, ClosedRounds, CohortSample, PastPeople),
        # states of algorithms
        *(TwoPhaseState, ExplorationState, Slack),
        *(CertifiedState, Guarantee, Evidence, EpochRecord, PlannedEpoch),
        *(BettingProcess, BettingBound, BettingState, EpochPlan, GroupJoin, AcceptedShares),
        *(ConstantOutcome, TabularOutcome, LogisticOutcome),
        *(DeltaLedger, Booking),
        *(DriftWatch, WatchedRule, DriftMonitor, ConstancyTest, Stream),
        *(Certificate, CellCount, CoveredFrom, DrawCount, GapInterval, OutsideCount, Suspension),
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
    fitted: dict[str, Hypothesis] = field(default_factory=dict)
    """The rules that hold fitted models, by `rule_name`."""

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
            rule = value.to_json()
            self._require_read_back(value, rule)
        except NotSerialisable:
            listed = self.hypotheses.listed if isinstance(self.hypotheses, FiniteClass) else ()
            if value not in listed:
                raise
            return {"is": "member", "number": listed.index(value)}
        if not isinstance(value, Unread):
            name, models = rule_name(rule)
            if models:
                self.fitted[name] = value
        return {"is": "rule", "rule": rule}

    def _require_read_back(self, value: Hypothesis, rule: Json) -> None:
        """NotSerialisable for a rule that could be written and not read."""
        if rule.get("kind") in HYPOTHESES:
            return
        own = type(value).__name__
        hypotheses: object = self.hypotheses
        if not isinstance(hypotheses, ReadsRules):
            raise NotSerialisable(
                f"a {own} is a rule of the kind {rule.get('kind')!r}, and nothing says how it is "
                "read back.",
                hint="give your class of rules a method read(rule) that makes the rule of what its "
                "to_json() wrote (evenhand.contracts.ReadsRules).",
            )
        written = json.loads(json.dumps(rule))
        again = hypotheses.read(written)
        if json.loads(json.dumps(again.to_json())) != written:
            raise NotSerialisable(
                f"read() of {type(hypotheses).__name__} makes another rule of what a {own} "
                f"wrote: {again.to_json()} of {rule}.",
                hint="read(rule) returns the rule whose to_json() is rule.",
            )

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
        "fields": encoder.mapping(to_fields(value)),
    },
    np.random.Generator: Encoder.generator,
    Hypothesis: Encoder.hypothesis,
}


_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, eq=False)
class Decoder:
    """JSON -> values, the inverse of `Encoder`.

    fitted: the rules with models that have been read, each once, by `rule_name`. unread: why a rule
    cannot be read, by name; None where that is an error.
    """

    arrays: Mapping[str, StoredArray]
    hypotheses: HypothesisClass | None = None
    fitted: dict[str, Hypothesis] = field(default_factory=dict)
    unread: dict[str, str] | None = None

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

    def rule(self, data: Json) -> Hypothesis:
        """A rule by its JSON; one that this installation cannot read leaves its place."""
        rule: Json = data["rule"]
        name, models = rule_name(rule)
        if not models or rule.get("kind") == "unread":
            return rule_from_json(rule, self.hypotheses)
        if self.unread is not None and name in self.unread:
            return Unread(rule, self.unread[name])
        if name not in self.fitted:
            try:
                self.fitted[name] = rule_from_json(rule, self.hypotheses)
            except UnreadableModel as error:
                if self.unread is None:
                    raise
                self.unread[name] = error.sentence
                return Unread(rule, error.sentence)
        return self.fitted[name]

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
    "rounds": lambda decoder, data: from_fields(decoder.decode(data["fields"])),
    "mixture": Decoder.mixture,
    "rule": Decoder.rule,
    "member": Decoder.member,
    "hypotheses": lambda decoder, _: decoder.hypotheses,
    "generator": Decoder.generator,
}


def rule_name(rule: Json) -> tuple[str, Json]:
    """A name for the JSON of a rule, with its models by their hash; and these models."""
    models: dict[str, Json] = {}
    return json.dumps(models_apart(rule, models), sort_keys=True), models


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
    unread: tuple[str, ...] = ()
    """Why rules could not be read: their places are kept (`Unread`)."""


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
    # what the fitted rules say, so that a reader with other versions can hold theirs against it
    document["versions"] = installed_versions() if encoder.fitted or known_class else {}
    document["answered"], own = _answers(encoder.fitted, stored.rounds)
    # write a neighbour, then move it into place
    final = Path(path)
    text = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    beside = final.with_name(f".{final.name}.{token_hex(4)}.tmp")
    arrays = {_DOCUMENT: text, **own, **encoder.arrays}
    mark = _mark_of(arrays)
    try:
        with beside.open("xb") as file:
            np.savez(file, allow_pickle=False, **arrays, **{_MARK: np.array(mark)})
            file.flush()
            os.fsync(file.fileno())
        with _alone(final):
            _require_known(final, {*known, mark})
            os.replace(beside, final)
    finally:
        beside.unlink(missing_ok=True)
    return mark


def _mark_of(arrays: Mapping[str, StoredArray]) -> str:
    """A hash of all that a file holds: the same learner gives the same bytes."""
    digest = blake2b(digest_size=16)
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


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
    asked = (arrays.pop(_ASKED, None), arrays.pop(_SAID, None))
    changed = _changed_versions(document["versions"])
    with warnings.catch_warnings():
        # said once, below; a model that an older version wrote was checked when that was left
        warnings.filterwarnings("ignore", message="Trying to unpickle estimator")
        own_class = _class_of(document["hypotheses"], hypotheses, other_versions=bool(changed))
        decoder = Decoder(arrays, own_class, unread={})
        decoded = {part: decoder.decode(parts[part]) for part in PARTS}
        if changed and decoder.fitted:
            assert decoder.unread is not None
            wrong = _answered_otherwise(decoder, decoded["rounds"], document["answered"], *asked)
            if wrong:
                decoder.unread.update(wrong)
                decoded = {part: decoder.decode(parts[part]) for part in PARTS}
    unread = tuple(decoder.unread.values()) if decoder.unread else ()
    if changed and (decoder.fitted or unread):
        _warn_of_versions(path, changed, len(decoder.fitted), len(unread))
    return Stored(document["learner"], **decoded, mark=mark, unread=unread)


# fitted models and the versions of the libraries that read them

LIBRARIES = ("scikit-learn", "numpy", "scipy", "pandas", "lightgbm", "xgboost", "catboost")
"""On whose versions it may depend what a fitted model says."""
MOST_ASKED = 512
"""So many of the last people are asked about, to see whether a model says the same."""
_ASKED = "asked"
_SAID = "said"


def installed_versions() -> dict[str, str]:
    """The versions of the libraries that models depend on, where they are installed."""
    found = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _changed_versions(written: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """(then, now) of each library that has another version than when the file was written."""
    now = installed_versions()
    return {
        name: (then, now.get(name, "none"))
        for name, then in written.items()
        if then != now.get(name)
    }


def _people_asked_about(rounds: Rounds) -> IntArray:
    """The rows of the last people who were not erased."""
    rows = np.flatnonzero(~rounds["erased"])
    return np.asarray(rows[-MOST_ASKED:])


def _said_by(rule: Hypothesis, rounds: Rounds, rows: IntArray) -> NDArray[np.int8]:
    """Whom of these people a rule accepts (1) and rejects (0); -1 for those whom it cannot read."""
    try:
        accepts = rule.accepts(rounds.features_of(rows), rounds.groups_of(rows))
        return np.asarray(accepts, dtype=np.int8)
    except Exception:  # noqa: BLE001  (whatever a model raises)
        if len(rows) == 1:
            return np.full(1, -1, dtype=np.int8)
    half = len(rows) // 2
    halves = [_said_by(rule, rounds, part) for part in (rows[:half], rows[half:])]
    return np.concatenate(halves)


def _answers(
    fitted: Mapping[str, Hypothesis], rounds: Rounds
) -> tuple[list[str], dict[str, StoredArray]]:
    """The names of the rules, and whom of the last people each accepts."""
    rows = _people_asked_about(rounds)
    if not fitted or not len(rows):
        return [], {}
    said = [_said_by(rule, rounds, rows) for rule in fitted.values()]
    return list(fitted), {_ASKED: rounds["round"][rows], _SAID: np.stack(said)}


def _answered_otherwise(
    decoder: Decoder,
    rounds: Rounds,
    answered: Sequence[str],
    asked: StoredArray | None,
    said: StoredArray | None,
) -> dict[str, str]:
    """Why rules that were read cannot be used: a certificate is about what they said then."""
    wrong = {}
    for name, rule in decoder.fitted.items():
        if name not in answered or asked is None or said is None:
            wrong[name] = "nobody is on file by whom its answers could be checked."
            continue
        rows = rounds.rows_of(np.asarray(asked, dtype=np.int64))
        now = _said_by(rule, rounds, rows)
        others = int((now != said[answered.index(name)]).sum())
        if others:
            wrong[name] = f"it decides otherwise here about {others} of {len(rows)} people."
    return wrong


def _warn_of_versions(
    path: str | os.PathLike[str], changed: Mapping[str, tuple[str, str]], read: int, unread: int
) -> None:
    which = ", ".join(f"{name} {then} (here {now})" for name, (then, now) in changed.items())
    lost = f"; {unread} cannot be used here and leave the policy" if unread else ""
    warnings.warn(
        f"{os.fspath(path)!r} was saved with {which}. {read - unread if unread else read} fitted "
        f"rules were read and decide alike about the last people on file{lost}.",
        stacklevel=4,
    )


def _class_of(
    document: Json | None, given: HypothesisClass | None, *, other_versions: bool
) -> HypothesisClass | None:
    if document is None:
        return None
    if given is None:
        if document["class"]["kind"] == "given":
            raise NotSerialisable(
                f"the file does not hold the hypothesis class: {document['class']['reason']}",
                hint="pass the same class again: load(path, hypotheses=...).",
            )
        given = class_from_json(document["class"])
    now = json.loads(json.dumps(dict(given.params)))
    then = dict(document["params"])
    if other_versions:  # each version shows other settings of a classifier
        now.pop("classifier_params", None)
        then.pop("classifier_params", None)
    if now != then:
        raise StorageError(
            f"hypotheses is {dict(given.params)}, but the learner was stored with "
            f"{document['params']}.",
            hint="pass the class with which the learner was made.",
        )
    return given


def _nothing_there(path: Path) -> StorageError:
    """There is no file; who asked for a table is told how to get one."""
    return StorageError(
        f"there is no file {path}",
        requirement="load reads a learner that save() stored",
        hint="name a file that a learner's save() wrote; evenhand.read_table reads a table.",
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
    needed = {"learner", "hypotheses", "models", "versions", "answered", *PARTS}
    missing = needed - document.keys()
    if missing:
        raise StorageError(f"{path} is damaged: its document lacks {', '.join(sorted(missing))}.")
    return document, arrays
