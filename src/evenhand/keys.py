"""The caller's own ids of people: under which round each was decided, and how.

A key is used once. Whoever asks again under it gets the decision that was taken, so that a call
that is repeated after a crash tosses no second coin; and an outcome that comes under a key goes to
that person or to nobody, whatever numbers rounds have got since.

Of a key its hash is kept (BLAKE2b, 128 bits), and of the person another one (64 bits), by which
a different person under the same key is noticed. So a person with a key takes 47 bytes in a file
and some 150 in memory. Who is erased leaves the hash of the key, the round and what was decided:
the key must not come back as a new person.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InvalidInput, LengthMismatch, ProtocolError
from evenhand.words import Decisions, FloatArray, Group, GroupArray, IntArray, Prices

KEY_BYTES = 16
KINDS: Mapping[str, type] = {
    "round": np.int64,  # under which the person was decided
    "accept": np.bool_,  # what was drawn
    "propensity": np.float64,
    "epoch": np.int32,
    "audit": np.bool_,
    "person": np.uint64,  # hash of features, group and prices; 0 once the person is erased
    "erased": np.bool_,
}
"""What is kept of each key, in the order of rounds."""


class NamedKey(NamedTuple):
    """A key as it was given, for messages, and its hash."""

    given: str | int
    hash: bytes


class KeyBook:
    """The keys of a learner, each with its round and its decision.

    Examples
    --------
    >>> book = KeyBook()
    >>> decided = Decisions(
    ...     np.array([True]), np.array([0.5]), 40, np.array([2]), np.zeros(1, dtype=bool)
    ... )
    >>> book.add(as_keys("anna", 1), [7], decided)
    >>> book.rounds(as_keys("anna")).tolist(), book.places(as_keys("bert"))
    ([40], [-1])
    """

    def __init__(self) -> None:
        self._place: dict[bytes, int] = {}
        self._size = 0
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in KINDS.items()
        }

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: str) -> NDArray[Any]:
        """One column, as a view."""
        return self._columns[name][: self._size]

    def places(self, keys: Sequence[NamedKey]) -> list[int]:
        """Where each key stands; -1 if it is unknown."""
        return [self._place.get(key.hash, -1) for key in keys]

    def rounds(self, keys: Sequence[NamedKey]) -> IntArray:
        """The round of each key; ProtocolError if one is unknown."""
        places = self.places(keys)
        if -1 in places:
            key = keys[places.index(-1)].given
            raise ProtocolError(
                f"the key {key!r} is unknown: nobody was decided about under it, or the learner "
                "was not saved afterwards.",
                hint="nothing can be reported about a lost decision; save the learner before a "
                "decision is acted on, and none is lost.",
                argument="key",
            )
        return np.asarray(self["round"][places])

    def require_same(
        self, keys: Sequence[NamedKey], places: Sequence[int], persons: Sequence[int]
    ) -> None:
        """ProtocolError if the person of a known key is another one now, or was erased."""
        for key, place, person in zip(keys, places, persons, strict=True):
            if place < 0:
                continue
            if self["erased"][place]:
                raise ProtocolError(
                    f"the person of the key {key.given!r} was erased; nobody is decided about "
                    "under it again.",
                    hint="use a new key if the person applies anew.",
                    argument="key",
                )
            if self["person"][place] != person:
                raise ProtocolError(
                    f"the key {key.given!r} was used in round {self['round'][place]} for a person "
                    "with other features, another group or other prices.",
                    hint="use one key for each application, and repeat a call with what it was "
                    "first made with.",
                    argument="key",
                )

    def decisions(self, places: Sequence[int]) -> Decisions:
        """What was decided at these places."""
        rounds = self["round"][places]
        return Decisions(
            self["accept"][places],
            self["propensity"][places],
            int(rounds[0]) if len(rounds) else 0,
            self["epoch"][places].astype(np.int64),
            self["audit"][places],
            rounds,
        )

    def add(self, keys: Sequence[NamedKey], persons: Sequence[int], decided: Decisions) -> None:
        """People were decided about under these keys, which were unknown."""
        start = self._size
        stop = start + len(keys)
        if stop > len(self._columns["round"]):
            for name, column in self._columns.items():
                larger = np.zeros(max(2 * len(column), stop, 64), column.dtype)
                larger[:start] = column[:start]
                self._columns[name] = larger
        rows = slice(start, stop)
        self._columns["person"][rows] = np.array(persons, dtype=np.uint64)
        for name in ("round", "accept", "propensity", "epoch", "audit"):
            self._columns[name][rows] = getattr(decided, name)
        self._size = stop
        for place, key in enumerate(keys, start):
            self._place[key.hash] = place

    def erase(self, rounds: IntArray) -> None:
        """The people of these rounds were erased; rounds without a key are passed over."""
        known = self["round"]  # ascending: people get their keys in the order of rounds
        places = np.searchsorted(known, rounds)
        places = places[np.append(known, -1)[places] == rounds]
        self["erased"][places] = True
        self["person"][places] = 0

    # storing

    def to_fields(self) -> dict[str, NDArray[Any]]:
        """Plain arrays; empty where no key was ever used."""
        if not self._size:
            return {}
        hashes = np.frombuffer(b"".join(self._place), dtype=np.uint8).reshape(-1, KEY_BYTES)
        return {"hash": hashes, **{name: self[name] for name in KINDS}}

    @classmethod
    def from_fields(cls, stored: Mapping[str, NDArray[Any]], decided: int) -> "KeyBook":
        """What `to_fields` wrote of a learner that has decided so many rounds; InvalidInput for
        columns that no run can have led to.
        """
        book = cls()
        if not stored:
            return book
        columns = dict(stored)
        hashes = columns.pop("hash")
        size = len(hashes)
        sound = hashes.shape == (size, KEY_BYTES) and hashes.dtype == np.uint8
        sound = sound and columns.keys() == KINDS.keys()
        for name, kind in KINDS.items() if sound else ():
            sound = sound and columns[name].shape == (size,) and columns[name].dtype == kind
        if not sound:
            raise InvalidInput("the columns of its keys are of other kinds or lengths.")
        packed = hashes.tobytes()
        book._place = {
            packed[place * KEY_BYTES : (place + 1) * KEY_BYTES]: place for place in range(size)
        }
        rounds = columns["round"]
        propensity = columns["propensity"]
        possible = len(book._place) == size and bool((np.diff(rounds) > 0).all())
        possible = possible and bool((rounds >= 0).all() and (rounds < decided).all())
        possible = possible and bool(((propensity > 0) & (propensity <= 1)).all())
        if not possible:
            raise InvalidInput(
                f"its keys do not stand for different rounds below {decided}, each decided with a "
                "probability above 0."
            )
        book._columns = {name: column.copy() for name, column in columns.items()}
        book._size = size
        return book


def as_keys(key: object, people: int | None = None) -> list[NamedKey]:
    """One key or several, each named once: `people` of them, if that is known.

    >>> [one.given for one in as_keys(np.array(["anna", "bert"]), 2)]
    ['anna', 'bert']
    """
    given: list[object] = [key]
    if isinstance(key, np.ndarray):
        given = np.atleast_1d(key).tolist()
    elif isinstance(key, Iterable) and not isinstance(key, str | bytes | np.generic):
        given = list(key)
    if people is not None and len(given) != people:
        raise LengthMismatch(
            f"{len(given)} keys come with {people} people; each person needs one.",
            argument="key",
        )
    keys = [_as_key(one, row) for row, one in enumerate(given)]
    if len({one.hash for one in keys}) < len(keys):
        seen = set[bytes]()
        for one in keys:
            if one.hash in seen:
                raise InvalidInput(
                    f"the key {one.given!r} stands twice in one call.",
                    hint="use one key for each person.",
                    argument="key",
                )
            seen.add(one.hash)
    return keys


def _as_key(given: object, row: int) -> NamedKey:
    """A text or a whole number; 7 and "7" are different keys."""
    value = given.item() if isinstance(given, np.generic) else given
    if isinstance(value, int) and not isinstance(value, bool):
        text = f"i{value}"
    elif isinstance(value, str) and value:
        text = f"s{value}"
    else:
        raise InvalidInput(
            f"the key {row} is {given!r}",
            requirement="a key is a text or a whole number, one for each person",
            hint="str(id) makes a text of any id.",
            argument="key",
        )
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=KEY_BYTES)
    return NamedKey(value, digest.digest())


def person_hashes(
    features: FloatArray, group: GroupArray | None, prices: Prices | None
) -> list[int]:
    """A number for each person, equal for equal features, groups and prices."""
    people = len(features)
    rows = features + 0.0  # -0.0 is 0.0
    groups: Sequence[Group] = [None] * people if group is None else group.tolist()
    owed = np.zeros((people, 0))
    if prices is not None:
        both = (prices.false_accept, prices.false_reject)
        owed = np.stack(
            [np.broadcast_to(np.asarray(one, float), (people,)) for one in both], axis=1
        )
    found = []
    for row, own_group, own_prices in zip(rows, groups, owed, strict=True):
        # 1, 1.0 and True are one group, and have one hash
        name = f"n{hash(own_group)}" if isinstance(own_group, Number) else f"t{own_group!r}"
        digest = blake2b(row.tobytes(), digest_size=8)
        digest.update(own_prices.tobytes())
        digest.update(name.encode(errors="surrogatepass"))
        found.append(int.from_bytes(digest.digest(), "little"))
    return found
