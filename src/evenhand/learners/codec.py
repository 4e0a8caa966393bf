"""Values as JSON and arrays, and back, without pickle: only kinds that are listed here (or
registered) can be written or made.

Plain values are themselves; arrays go into a dictionary of arrays, everything else becomes {"is":
kind, ...}. A dataclass is registered with `storable`; it is then written field by field and made by
its own constructor, so that impossible states cannot be loaded. Every number is finite: NaN and
infinity are neither written nor read (see `not_finite`).
"""

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.bandit import PracticalSchedule, TheorySchedule
from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding
from evenhand.contracts import Hypothesis, HypothesisClass
from evenhand.errors import EvenhandError, NotSerialisable, StorageError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import History
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses import FiniteClass, hypothesis_from_json
from evenhand.policies import Mixture
from evenhand.words import LabelledSample, Prices

Record = TypeVar("Record")

_RECORDS: dict[str, type] = {}
_RANGES: dict[str, Mapping[str, tuple[float, float]]] = {}


def stored_name(kind: type) -> str:
    """The name of a class in files: its own for those of evenhand; others may be called the same,
    so that they have their module's too.
    """
    own = kind.__module__.startswith("evenhand.")
    return kind.__name__ if own else f"{kind.__module__}.{kind.__qualname__}"


def storable(record: type[Record], **ranges: tuple[float, float]) -> type[Record]:
    """Register a dataclass, as a decorator or by a call; its fields must be storable themselves.

    `ranges`: between which values the numbers of a field lie; a file in which they do not is
    refused.
    """
    _RECORDS[stored_name(record)] = record
    if ranges:
        _RANGES[stored_name(record)] = ranges
    return record


for _known in (
    *(FalsePositiveRate, FalseNegativeRate, SelectionRate),
    *(PracticalSchedule, TheorySchedule),
    *(JointHoeffding, Dkw, ClopperPearson),
    *(Prices, LabelledSample, RoundLog, History),
):
    storable(_known)


@dataclass(eq=False)
class Encoder:
    """Values -> JSON; arrays are gathered in `arrays`. The hypothesis class is written once, by
    whoever owns the encoder.
    """

    hypotheses: HypothesisClass | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def encode(self, value: Any) -> Any:
        """The JSON of a value; NotSerialisable where there is none."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if value is self.hypotheses:
            return {"is": "hypotheses"}
        if _RECORDS.get(stored_name(type(value))) is type(value):
            return self.record(value)
        for kind, write in _WRITERS.items():
            if isinstance(value, kind):
                return write(self, value)
        raise NotSerialisable(
            f"{value!r} cannot be stored without pickle.",
            hint="use the settings that evenhand offers by name, or register your dataclass with evenhand.learners.codec.storable.",
        )

    def record(self, value: Any) -> Any:
        """A registered dataclass, field by field."""
        stored = {f.name: self.encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"is": "record", "kind": stored_name(type(value)), "fields": stored}

    def sequence(self, kind: str, values: Any) -> Any:
        """Any collection, item by item."""
        return {"is": kind, "items": [self.encode(value) for value in values]}

    def array(self, value: NDArray[Any]) -> Any:
        """An array; one of objects (groups of any kind) as numbers of its distinct values."""
        if value.dtype.kind == "O":
            items, seen = value.tolist(), dict[tuple[type, Any], int]()
            try:
                codes = [seen.setdefault((type(item), item), len(seen)) for item in items]
            except TypeError:  # something that cannot be hashed
                return self.sequence("objects", items)
            distinct = self.sequence("objects", [item for _, item in seen])
            return distinct | {"codes": self.array(np.array(codes, dtype=np.int64))}
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        return {"is": "array", "name": name}

    def mapping(self, value: Mapping[Any, Any]) -> Any:
        """Keys may be anything."""
        return {
            "is": "dict",
            "items": [[self.encode(key), self.encode(item)] for key, item in value.items()],
        }

    def mixture(self, value: Mixture) -> Any:
        """Weights and rules."""
        rules = [self.hypothesis(rule) for rule in value.hypotheses]
        return {
            "is": "mixture",
            "rules": rules,
            "weights": list(value.weights),
            "group_use": value.group_use,
        }

    def hypothesis(self, value: Hypothesis) -> Any:
        """A rule's own JSON, or its number in a class that lists its members."""
        try:
            return {"is": "rule", "rule": value.to_json()}
        except NotSerialisable:
            listed = self.hypotheses.listed if isinstance(self.hypotheses, FiniteClass) else ()
            if value not in listed:
                raise
            return {"is": "member", "number": listed.index(value)}

    def generator(self, value: np.random.Generator) -> Any:
        """The state of a bit generator is a dictionary of whole numbers."""
        return {"is": "generator", "state": self.encode(value.bit_generator.state)}


_WRITERS: Mapping[type, Callable[[Encoder, Any], Any]] = {
    np.ndarray: Encoder.array,
    dict: Encoder.mapping,
    list: lambda encoder, value: encoder.sequence("list", value),
    tuple: lambda encoder, value: encoder.sequence("tuple", value),
    set: lambda encoder, value: encoder.sequence("set", sorted(value)),
    Mixture: Encoder.mixture,
    np.random.Generator: Encoder.generator,
    Hypothesis: Encoder.hypothesis,
}


@dataclass(frozen=True, eq=False)
class Decoder:
    """JSON -> values, the inverse of `Encoder`."""

    arrays: Mapping[str, NDArray[Any]]
    hypotheses: HypothesisClass | None = None

    def decode(self, data: Any) -> Any:
        """The value; StorageError where the data make no sense."""
        if not isinstance(data, dict):
            return data
        kind = str(data.get("is"))
        if kind not in _READERS:
            raise StorageError(
                f"the file holds a value of kind {kind!r}, which this version of evenhand does not know."
            )
        try:
            return _READERS[kind](self, data)
        except (StorageError, NotSerialisable):
            raise
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            EvenhandError,
        ) as error:
            raise StorageError(f"a stored value of kind {kind!r} is malformed: {error}") from error

    def items(self, data: Any) -> list[Any]:
        """The items of a collection."""
        return [self.decode(item) for item in data["items"]]

    def objects(self, data: Any) -> NDArray[Any]:
        """An array of objects; filled one by one, because numpy would take apart tuples. `codes`:
        each entry's number among the items.
        """
        items = self.items(data)
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = item
        return array if data.get("codes") is None else array[self.decode(data["codes"])]

    def record(self, data: Any) -> Any:
        """By the constructor of the registered class."""
        kind = data["kind"]
        if kind not in _RECORDS:
            raise StorageError(
                f"the file holds a {kind!r}, which is not registered.",
                hint="import its module first.",
            )
        found = {name: self.decode(value) for name, value in data["fields"].items()}
        for name, (low, high) in _RANGES.get(kind, {}).items():
            value = np.asarray(found[name])
            if value.dtype.kind not in "iuf" or (value < low).any() or (value > high).any():
                raise StorageError(f"{name} of the stored {kind} leaves [{low:g}, {high:g}].")
        return _RECORDS[kind](**found)

    def mixture(self, data: Any) -> Mixture:
        """Weights and rules."""
        return Mixture(
            tuple(self.decode(rule) for rule in data["rules"]),
            tuple(data["weights"]),
            data["group_use"],
        )

    def member(self, data: Any) -> Hypothesis:
        """A rule by its number in the class."""
        if not isinstance(self.hypotheses, FiniteClass):
            raise StorageError(
                "the file refers to members of a FiniteClass, but the class that was given is none."
            )
        number: int = data["number"]
        return self.hypotheses.listed[number]

    def generator(self, data: Any) -> np.random.Generator:
        """A generator in the state in which it was stored."""
        state = self.decode(data["state"])
        if state["bit_generator"] not in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"):
            raise StorageError(f"{state['bit_generator']!r} is not a bit generator of numpy.")
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)


_READERS: Mapping[str, Callable[[Decoder, Any], Any]] = {
    "array": lambda decoder, data: decoder.arrays[data["name"]],
    "objects": Decoder.objects,
    "dict": lambda decoder, data: {
        decoder.decode(key): decoder.decode(item) for key, item in data["items"]
    },
    "list": Decoder.items,
    "tuple": lambda decoder, data: tuple(decoder.items(data)),
    "set": lambda decoder, data: set(decoder.items(data)),
    "record": Decoder.record,
    "mixture": Decoder.mixture,
    "rule": lambda _, data: hypothesis_from_json(data["rule"]),
    "member": Decoder.member,
    "hypotheses": lambda decoder, _: decoder.hypotheses,
    "generator": Decoder.generator,
}


def array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    """An array as text: its bytes, compressed, in base 64."""
    plain = np.ascontiguousarray(array)
    data = base64.b64encode(zlib.compress(plain.tobytes(), 6)).decode()
    return {"kind": plain.dtype.str, "shape": list(plain.shape), "data": data}


def array_from_json(value: Mapping[str, Any]) -> NDArray[Any]:
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


def not_finite(data: Any, arrays: Mapping[str, NDArray[Any]], path: str) -> str | None:
    """The first number in encoded data that is NaN or infinite, with its place: "state._now is
    nan"; None if all are finite.
    """
    if isinstance(data, float):
        return None if isfinite(data) else f"{path} is {data}"
    if isinstance(data, dict) and data.get("is") == "array":
        array = arrays.get(str(data.get("name")), np.zeros(0))
        bad = array[~np.isfinite(array)] if array.dtype.kind in "fc" else array[:0]
        return f"{path} contains {bad[0]}" if bad.size else None
    parts: list[tuple[str, Any]] = []
    if isinstance(data, list):
        parts = [(f"{path}[{place}]", item) for place, item in enumerate(data)]
    elif isinstance(data, dict) and data.get("is") == "dict":
        parts = [
            pair
            for key, item in data["items"]
            for pair in ((f"{path}.{key}", item), (f"a key of {path}", key))
        ]
    elif isinstance(data, dict):
        named = data["fields"] if data.get("is") == "record" else data
        parts = [(path if key == "items" else f"{path}.{key}", item) for key, item in named.items()]
    return next(
        (found for name, item in parts if (found := not_finite(item, arrays, name)) is not None),
        None,
    )
