"""The one place where the columns of people are read: outcomes, decisions, groups and weights.

Every function that takes them as arrays, series or lists reads them here, so that a column means
the same wherever it is handed over, and what could mean two things is an error that shows the
values and the way out.

**Outcomes and decisions** have two values. Which of them means yes is understood in three ways of
writing alone:

    yes (good, accepted)    True    1    +1
    no  (bad, rejected)     False   0    -1

True and False are 1 and 0, and 1.0 is 1. One column keeps to one way: 1 always means yes, so what
is left must be all 0 or all -1. A column with a single value has one reading, too: all 1 is yes for
all people, all 0 or all -1 is no. (That 1 is the *bad* outcome, as in a column "default", nobody
can see in the numbers: `label == 0` turns it round, and the text of a measurement says how the
column was read.) Everything else is refused, numbers in texts ("1") among it.

**Groups** are texts, numbers or other hashable values. 1 and "1" are not told apart by a reader, a
column of more than `MANY_NUMBERS` numbers is a measurement and no group.

**Rows belong together by place.** Series of pandas say which row is whose; where their indexes
differ, they are not put in order silently and not taken by place silently.

Columns of numpy, pandas, polars and pyarrow are read as they are, with gaps and without. Numbers
and truth values are never looked at one by one; only columns of objects are.
"""

import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isinf
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch, NotFinite

MANY_NUMBERS = 100
"""A column with more different numbers than this names no groups."""
FEW_SHOWN = 5
"""So many different values of a column are shown in an error."""

GroupColumn = ArrayLike | Sequence[Hashable]
"""What groups may come in."""

_PLAIN = {str, int, float, bool}


# outcomes and decisions


@dataclass(frozen=True, eq=False)
class YesNo:
    """A column of two values, as it was read.

    sign: +1 where it says yes, -1 where it says no, not a number where nothing is known.
    read: how it was read, "label: 1 is good (60.4% of 4,000)".
    plain: whether it was written as -1 and +1 or in truth values, which cannot be read otherwise.
    """

    sign: NDArray[np.float64]
    read: str
    plain: bool


@dataclass(frozen=True)
class _Words:
    """What yes and no mean in a column, for its errors."""

    noun: str
    yes: str
    no: str
    error: type[InvalidInput]


_OUTCOME = _Words("an outcome", "good", "bad", BadLabel)
_DECISION = _Words("a decision", "accepted", "rejected", InvalidInput)


def read_outcomes(values: object, rows: int, name: str = "label") -> YesNo:
    """Outcomes, some of which may be missing (None, NaN, NA).

    >>> found = read_outcomes([1, 0, None, 1], 4)
    >>> found.sign.tolist(), found.read
    ([1.0, -1.0, nan, 1.0], 'label: 1 is good (66.7% of 3)')
    """
    return _yes_no(values, rows, name, _OUTCOME)


def as_labels(values: object, rows: int, name: str = "label") -> NDArray[np.int64]:
    """(rows,) outcomes in {-1, +1}, none of them missing."""
    sign = read_outcomes(values, rows, name).sign
    _require_known(sign, name, _OUTCOME)
    return sign.astype(np.int64)


def labels_of_accepted(
    values: object, taken: NDArray[np.bool_], name: str = "label"
) -> tuple[NDArray[np.int64], int]:
    """+1, -1, and 0 where no outcome is known, of a log; and how many of the rejected have one. An
    outcome of somebody who was rejected is looked at no further: it cannot say how labels are
    written.

    In a log 0 beside -1 is an open outcome, as in the record's own `label`. Beside 1 alone it may
    be open or bad: that is understood only if gaps show how open outcomes are written.

    >>> labels_of_accepted([1, 0, 0, None, 1], np.array([True, True, False, True, False]))
    (array([ 1, -1,  0,  0,  0]), 1)
    >>> labels_of_accepted([1, -1, 0], np.array([True, True, True]))
    (array([ 1, -1,  0]), 0)
    """
    array = _numbers_or_objects(values)
    _require_rows(array, len(taken), name)
    seen = array[taken]
    if array.dtype.kind in "iuf" and not _holds_truth_values(values, _column(values)):
        open_or_bad = seen == 0
        if (seen == -1).any():
            seen = np.where(open_or_bad, np.nan, seen)
        elif open_or_bad.any() and not np.isnan(array).any():
            raise BadLabel(
                f"{name} contains 0 and never -1; in a log 0 may be a bad outcome or one that is "
                "not known.",
                hint=f"if it is bad: np.where({name} == 0, -1, {name}); if it is not known: "
                f"np.where({name} == 0, np.nan, {name}).",
                argument=name,
            )
    labels = np.zeros(len(taken), dtype=np.int64)
    sign = read_outcomes(seen, int(taken.sum()), name).sign
    labels[taken] = np.nan_to_num(sign)
    others = array[~taken]
    if others.dtype.kind in "biuf":
        return labels, int(((others != 0) & (others == others)).sum())
    return labels, sum(not is_missing(one) and bool(one != 0) for one in others.tolist())


def read_decisions(values: object, rows: int, name: str = "accepted") -> YesNo:
    """Decisions, none of them missing.

    >>> read_decisions([1, 0, 0, 1], 4).read
    'accepted: 1 is accepted (50.0% of 4)'
    """
    found = _yes_no(values, rows, name, _DECISION)
    _require_known(found.sign, name, _DECISION)
    return found


def as_decisions(values: object, rows: int, name: str = "accepted") -> NDArray[np.bool_]:
    """(rows,) truth values: who was accepted."""
    return read_decisions(values, rows, name).sign > 0


def as_probabilities(values: object, rows: int, name: str) -> NDArray[np.float64]:
    """(rows,) probabilities of being accepted, or decisions, which are probabilities of 0 and 1."""
    array = _numbers_or_objects(values)
    _require_rows(array, rows, name)
    if array.dtype.kind == "f":
        _require_known(array, name, _DECISION)
        inside = (array >= 0) & (array <= 1)
        if inside.all():
            return np.asarray(array, dtype=np.float64)
        if (array[~inside] != -1).any() or inside[array != 1].any():
            raise InvalidInput(
                f"{name} contains {array[~inside][0]:g}; a decision is 1 (accepted), 0 (rejected), "
                "or the probability of being accepted.",
                hint=f"for a score: {name} >= cutoff.",
                argument=name,
            )
    return np.where(as_decisions(values, rows, name), 1.0, 0.0)


def as_finite(values: object, rows: int, name: str) -> NDArray[np.float64]:
    """(rows,) finite numbers, as scores are."""
    array = _numbers_or_objects(values)
    _require_rows(array, rows, name)
    if array.dtype.kind not in "biuf":
        text = next((one for one in array.tolist() if not _is_number(one)), None)
        raise InvalidInput(
            f"{name} contains {_shown(text)}; it is one number for each row.",
            hint="convert texts to numbers first.",
            argument=name,
        )
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise NotFinite(
            f"{name} is {numbers[row]:g} in row {row}; every entry must be a finite number.",
            hint="leave out rows in which it is not known.",
            argument=name,
        )
    return numbers


def as_classes(values: object, name: str = "y") -> Any:
    """The two classes of a classifier as numpy has them, none missing: which of them is good, the
    classifier is told. What is no column (a column of a matrix, say) is left to scikit-learn.

    >>> as_classes(np.array([True, False], dtype=object)).dtype
    dtype('bool')
    """
    if dimensions(values) != 1:
        return values
    array = _column(values)
    entries = _entries(array) if array.dtype.kind == "O" else []
    missing = [is_missing(one) for one in entries] if entries else array != array
    if np.any(missing):
        raise BadLabel(
            f"{name} is missing in {int(np.sum(missing)):,} of {len(array):,} rows.",
            hint="leave out people without an outcome; nothing is made up for them.",
            argument=name,
        )
    if not entries:
        return array
    found = np.array(entries)
    numbers = _floats(array) if found.dtype.kind == "O" else None
    return found if numbers is None else numbers


def as_reported_labels(rounds: NDArray[np.int64], labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Outcomes that come one by one: -1 and +1 and nothing else, whether a caller keeps to one way
    of writing would show over many calls only.
    """
    if labels.dtype.kind in "iuf":
        fits = (labels == 1) | (labels == -1)
    else:  # True equals 1, and False would be refused
        fits = np.array(
            [
                _is_number(one) and not _is_truth_value(one) and one in (-1, 1)
                for one in labels.tolist()
            ],
            dtype=bool,
        )
    if not fits.all():
        place = int(np.argmin(fits))
        raise BadLabel(
            f"the label of round {int(rounds[place])} is {labels.tolist()[place]!r}; labels are -1 "
            "(bad outcome) and +1 (good outcome).",
            hint="1 if outcome == good_value else -1.",
            argument="label",
        )
    return labels.astype(np.int64)


def _yes_no(values: object, rows: int, name: str, words: _Words) -> YesNo:
    array = _column(values)
    _require_rows(array, rows, name)
    truth_values = _holds_truth_values(values, array)
    if array.dtype.kind == "O":
        numbers = _floats(array)
        if numbers is None:
            raise _unclear(_entries(array), values, name, words)
        array = numbers
    sign = _signs(array, values, name, words)
    known = int(np.isfinite(sign).sum())
    share = float((sign == 1).sum()) / known if known else 0.0
    value = "True" if truth_values else "1"
    read = f"{name}: {value} is {words.yes} ({share:.1%} of {known:,})"
    return YesNo(sign, read, truth_values or not known or bool((array == -1).any()))


def _signs(array: NDArray[Any], given: object, name: str, words: _Words) -> NDArray[np.float64]:
    """Of a column of numbers or truth values, as a whole."""
    if array.dtype.kind not in "biuf":
        raise _unclear(array.tolist(), given, name, words)
    yes = array == 1
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=bool)
    rest = array[~(yes | missing)]
    # 1 means yes; what is left must be one and the same way of writing no.
    if len(rest) and (rest[0] not in (0, -1) or (rest != rest[0]).any()):
        raise _unclear(np.unique(array).tolist(), given, name, words)
    sign = np.where(yes, 1.0, -1.0)
    sign[missing] = np.nan
    return sign


def _require_known(column: NDArray[np.float64], name: str, words: _Words) -> None:
    missing = np.isnan(column)
    if missing.any():
        raise words.error(
            f"{name} is missing in {int(missing.sum()):,} of {len(column):,} rows (first: row "
            f"{int(np.argmax(missing))}).",
            hint=f"leave out people without {words.noun}; nothing is made up for them.",
            argument=name,
        )


def _holds_truth_values(given: object, array: NDArray[Any]) -> bool:
    """Whether a column has nothing but True and False, and gaps."""
    if array.dtype.kind == "O":
        known = [one for one in _entries(array) if not is_missing(one)]
        return bool(known) and all(map(_is_truth_value, known))
    # A column with gaps has become numbers; its kind is written in its own words.
    kind = str(getattr(given, "dtype", getattr(given, "type", array.dtype))).lower()
    return array.dtype.kind == "b" or kind.startswith("bool")


def _unclear(values: list[Any], given: object, name: str, words: _Words) -> InvalidInput:
    """The error about values that do not say which of them means yes."""
    known = [one for one in values if not is_missing(one)]
    seen = list(dict.fromkeys(map(_shown, known)))
    shown = ", ".join(seen[:FEW_SHOWN]) + ", ..." * (len(seen) > FEW_SHOWN)
    # A list compared with a value is False as a whole.
    elementwise = type(given).__module__.partition(".")[0] in ("numpy", "pandas", "polars")
    column = name if elementwise else f"np.asarray({name})"
    numbers = all(map(_is_number, known))
    if numbers and set(seen) <= {"-1", "0", "1", "True", "False"}:
        hint = (
            f"0 and -1 are two ways of writing {words.no}; if 0 means not known: "
            f"np.where({column} == 0, np.nan, {column})."
        )
    elif numbers and len(seen) > 2 and words is _DECISION:
        hint = f"scores become decisions by a cut-off: {column} >= cutoff."
    else:
        ways = [f"{column} == {one}" for one in seen[:2]]
        if len(known) < len(values):
            # The comparison alone would turn a gap into a no.
            ways = [f"np.where(pandas.isna({name}), np.nan, {way})" for way in ways]
        more = ", ..." * (len(seen) > 2)
        hint = f"say which value means {words.yes}: {' or '.join(ways)}{more}."
    return words.error(
        f"{name} contains {shown}; {words.noun} is True or False, 1 or 0, or +1 or -1 "
        f"({words.yes} or {words.no}), in one way for all people.",
        hint=hint,
        argument=name,
    )


def _shown(value: Any) -> str:
    """A value as it is shown: texts in quotes, whole numbers without their point."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    return str(plain) if isinstance(plain, Decimal) else repr(plain)


# groups


def as_known_groups(values: object, rows: int, name: str = "group") -> NDArray[Any]:
    """(rows,) group labels. None, NaN, NaT, pandas.NA, blank texts and masked entries all mean
    "unknown", and all become None.

    An array in which nothing can be unknown stays as it is; any other becomes one of objects.

    >>> as_known_groups(["a", float("nan"), None], 3).tolist()
    ['a', None, None]
    """
    array = values if type(values) is np.ndarray else _array_of_groups(values)
    _require_rows(array, rows, name)
    kind = array.dtype.kind
    if kind in "biu":
        if rows > MANY_NUMBERS:
            _require_few_numbers(array, name)
        return array
    if kind in "US":
        # only a text that is empty or begins with a blank comes before "!"
        if True not in (array < ("!" if kind == "U" else b"!")):
            return array
        blank = [row for row, text in enumerate(array.tolist()) if not text.strip()]
        return array if not blank else _without(array, blank)
    if kind == "f" and not np.isinf(array).any():
        missing = np.isnan(array)
        if rows > MANY_NUMBERS:
            _require_few_numbers(array[~missing], name)
        return array if not missing.any() else _without(array, missing)
    unknown = []
    for row, label in enumerate(array.tolist()):
        if isinstance(label, tuple):
            raise InvalidInput(
                f"a label in {name} is a tuple, which numpy would compare part by part.",
                hint='join its parts into one text, "female/over 60".',
                argument=_argument(name),
            )
        if getattr(label, "__hash__", None) is None or (isinstance(label, float) and isinf(label)):
            raise InvalidInput(
                f"the {name} of row {row} is {label!r}; a group label is a text, a finite number, "
                "or another hashable value.",
                hint="None marks an unknown group.",
                argument=_argument(name),
            )
        if (isinstance(label, str) and not label.strip()) or is_missing(label):
            unknown.append(row)
    known = array if not unknown else _without(array, unknown)
    if rows > 1:
        _require_names(known, name)
    return known


def as_group(values: object, rows: int, name: str = "group") -> NDArray[Any]:
    """(rows,) group labels, none of them unknown."""
    array = as_known_groups(values, rows, name)
    labels = array.tolist() if array.dtype.kind == "O" else []
    unknown = [row for row, label in enumerate(labels) if label is None]
    if unknown:
        raise InvalidInput(
            f"{name} is missing in {len(unknown)} of {rows} rows (first: row {unknown[0]}).",
            hint="leave those rows out, or give them a group label of their own.",
            argument=_argument(name),
        )
    return array


def distinct_groups(group: Iterable[Any]) -> tuple[Any, ...]:
    """The groups in ascending order (by text where they cannot be compared).

    >>> distinct_groups(["b", "a", "b"]), distinct_groups(np.array([2, 1, 2]))
    (('a', 'b'), (1, 2))
    """
    if isinstance(group, np.ndarray):
        values = set(np.unique(group).tolist() if group.dtype.kind in "biuf" else group.tolist())
    else:
        values = set(group)
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=str))


def _array_of_groups(values: object) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # masked entries are None there
    if isinstance(values, list | tuple):
        if len(kinds := set(map(type, values))) == 1 and kinds <= _PLAIN:
            return np.asarray(values)
        # numpy would turn ["a", nan] into texts, and take apart tuples
        return _objects(values)
    return _column(values, as_numbers=False)


def _without(group: NDArray[Any], rows: list[int] | NDArray[np.bool_]) -> NDArray[Any]:
    """The same groups, unknown in some rows."""
    known = group.astype(object)
    known[rows] = None
    return known


def _require_few_numbers(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind in "iu" and int(array.max()) - int(array.min()) < MANY_NUMBERS:
        return
    _raise_if_many(len(np.unique(array)), name)


def _raise_if_many(numbers: int, name: str) -> None:
    if numbers > MANY_NUMBERS:
        raise InvalidInput(
            f"{name} holds {numbers:,} different numbers, and each of them would be a group of its "
            "own.",
            hint="cut the numbers into ranges: np.digitize(values, cuts).",
            argument=_argument(name),
        )


def _require_names(group: NDArray[Any], name: str) -> None:
    """Objects: groups that nobody can tell apart by their names are one group or a mistake."""
    groups = set(group.tolist()) - {None}
    of_numbers = [one for one in groups if _is_number(one) and not _is_truth_value(one)]
    _raise_if_many(len(of_numbers), name)
    named: dict[str, Any] = {}
    for one in groups:
        text = one.decode(errors="replace") if isinstance(one, bytes) else _shown_name(one)
        if text in named:
            raise InvalidInput(
                f"{name} holds {named[text]!r} and {one!r}, two groups of the same name.",
                hint="write one of them like the other.",
                argument=_argument(name),
            )
        named[text] = one
    # Truth values equal 0 and 1, so that a set keeps one of both.
    if of_numbers or groups & {True, False}:
        kinds = {_is_truth_value(one) for one in group.tolist() if _is_number(one)}
        if len(kinds) > 1:
            raise InvalidInput(
                f"{name} holds truth values beside numbers, and True equals 1.",
                hint="write one of them like the other.",
                argument=_argument(name),
            )


def _argument(name: str) -> str:
    """The argument in which a column stands: group['sex'] is in group."""
    return name.partition("[")[0]


def _shown_name(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# weights


def as_weights(values: object, rows: int, name: str = "count") -> NDArray[np.float64]:
    """(rows,) finite numbers of at least 0: how many people each row stands for. One number stands
    for all rows.
    """
    given = np.full(rows, values) if dimensions(values) == 0 else values
    weights = as_finite(given, rows, name)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InvalidInput(
            f"{name} is {weights[row]:g} in row {row}; a row stands for at least 0 people.",
            hint="0 leaves a row out.",
            argument=name,
        )
    return weights


def as_counts(weights: NDArray[np.float64], why: str, name: str = "count") -> NDArray[np.int64]:
    """The weights as whole numbers, where parts of people cannot be meant; `why`: who needs that,
    "an exact interval counts people".
    """
    whole = np.rint(weights)
    apart = weights != whole
    if apart.any():
        row = int(np.argmax(apart))
        raise InvalidInput(
            f"{name} is {weights[row]:g} in row {row}; {why}, so every {name} is a whole number.",
            hint="pass the numbers of people, not weights or shares.",
            argument=name,
        )
    if not whole.any():
        raise InvalidInput(f"every {name} is 0, so there are no people; {why}.", argument=name)
    return whole.astype(np.int64)


# rows that belong together


def groupings_of(group: object, rows: int, *, unknown: bool = False) -> dict[str, NDArray[Any]]:
    """The groups of one grouping, whose name is empty, or of several by name; `unknown`: whether
    somebody may have none.

    >>> groupings_of({"sex": ["f", "m"], "race": ["b", "b"]}, 2)["race"].tolist()
    ['b', 'b']
    """
    read = as_known_groups if unknown else as_group
    if not isinstance(group, Mapping):
        return {"": read(group, rows)}
    if not group:
        raise InvalidInput(
            "group names no grouping.", hint='{"sex": ..., "race": ...}.', argument="group"
        )
    return {name: read(column, rows, f"group[{name!r}]") for name, column in group.items()}


def columns_of_groups(group: object) -> dict[str, object]:
    """The columns of one grouping or of several, under the names that errors have for them."""
    if not isinstance(group, Mapping):
        return {"group": group}
    return {f"group[{name!r}]": column for name, column in group.items()}


def number_of_people(values: object, name: str) -> int:
    """How many people a column is about: at least one."""
    try:
        rows = len(values)  # type: ignore[arg-type]
    except TypeError:
        raise LengthMismatch(
            f"{name} is {values!r}; it needs one entry per person.", argument=name
        ) from None
    if rows == 0:
        raise InvalidInput(f"{name} has no rows; at least one person is needed.", argument=name)
    return rows


def require_same_order(columns: Mapping[str, object]) -> None:
    """InvalidInput if columns of pandas have different indexes: pandas would join them by index,
    arrays are joined by place, and nobody can say which is meant.

    >>> import pandas as pd
    >>> column = pd.Series([1, 0, 1])
    >>> require_same_order({"accepted": column, "group": column, "label": [1, 0, 1]})
    """
    before: tuple[str, Any] | None = None
    for name, column in columns.items():
        index = _index(column)
        if index is None:
            continue
        if before is None:
            before = name, index
        elif len(index) == len(before[1]) and not index.equals(before[1]):
            place = int(np.argmax(np.asarray(index != before[1])))
            raise InvalidInput(
                f"the rows of {name} stand in another order than those of {before[0]}: by their "
                f"indexes row {place} is {_shown(index[place])} in one and "
                f"{_shown(before[1][place])} in the other.",
                hint="take all columns from one frame; or, where they belong together by place, "
                "hand over .to_numpy() of each.",
                argument=_argument(name),
            )


def require_no_permutation(columns: Mapping[str, object]) -> None:
    """InvalidInput if columns of pandas have the same index in different orders. Otherwise rows
    belong together by place, as scikit-learn has it.
    """
    indexes = {name: one for name, column in columns.items() if (one := _index(column)) is not None}
    for name, index in indexes.items():
        first, other = next(iter(indexes.items()))
        if index.equals(other) or len(index) != len(other):
            continue
        if index.isin(other).all() and other.isin(index).all():
            raise InvalidInput(
                f"the rows of {name} stand in another order than those of {first}.",
                hint="take both from one frame; or hand over .to_numpy() of each.",
                argument=_argument(name),
            )


def require_row_order(column: object, rows: int, name: str) -> None:
    """InvalidInput if a column of pandas numbers the rows of a sample, which has no index any more,
    in another order than they stand in.

    >>> import pandas as pd
    >>> require_row_order(pd.Series([0.0, 1.0], index=[7, 3]), 2, "incumbent")
    >>> try:
    ...     require_row_order(pd.Series([0.0, 1.0], index=[1, 0]), 2, "incumbent")
    ... except InvalidInput as error:
    ...     print(error.hint)
    sort it by its index, or hand over .to_numpy() where it belongs to the rows by place.
    """
    index = _index(column)
    if index is None or len(index) != rows or index.dtype.kind not in "iu":
        return
    places = np.asarray(index)
    order = np.arange(rows)
    if not np.array_equal(places, order) and np.array_equal(np.sort(places), order):
        raise InvalidInput(
            f"the index of {name} numbers the rows in another order than they stand in.",
            hint="sort it by its index, or hand over .to_numpy() where it belongs to the rows by "
            "place.",
            argument=_argument(name),
        )


def _index(column: object) -> Any:
    """The index of a series or frame of pandas; None for all else."""
    return getattr(column, "index", None) if hasattr(column, "iloc") else None


def _require_rows(array: NDArray[Any], rows: int, name: str) -> None:
    if array.ndim == 1 and len(array) == rows:
        return
    hint = None
    if array.ndim == 2 and array.shape == (rows, 1):
        hint = f"{name}.ravel(), or the column of the frame itself."
    elif array.ndim == 0:
        hint = "a column of values; a name of a column is looked up nowhere."
    raise LengthMismatch(
        f"{name} has shape {array.shape} but there are {rows} rows; it needs one entry per row.",
        hint=hint,
        argument=_argument(name),
    )


# columns of other packages


def dimensions(values: object) -> int:
    """Of whatever is, or can become, an array."""
    known = getattr(values, "ndim", None)
    return known if isinstance(known, int) else np.asarray(values).ndim


def is_missing(value: Any) -> bool:
    """Whether an entry stands for nothing: None, NaN, NaT, pandas.NA, a masked entry."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str | bytes | bool | np.bool_):
        return False
    # of all values NaN and NaT alone differ from themselves, and pandas.NA answers with itself
    other = value != value
    return other is value or (isinstance(other, bool | np.bool_) and bool(other))


def _column(values: object, *, as_numbers: bool = True) -> NDArray[Any]:
    """An array of what was handed over: of one of numpy's kinds of numbers, of truth values, or of
    objects. as_numbers: numbers with gaps become floats, in which NaN is a gap.
    """
    if type(values) is np.ndarray:
        found = values
    elif isinstance(values, np.ma.MaskedArray):
        found = _of_masked(values, as_numbers)
    elif isinstance(values, list | tuple):
        found = _of_list(values)
    elif type(values).__module__.partition(".")[0] in ("builtins", "numpy"):
        found = np.asarray(values)
    else:
        found = _of_series(values, as_numbers)
    if found.dtype.kind in "US" and as_numbers:
        return found.astype(object)
    return found


def _of_masked(values: np.ma.MaskedArray[Any, Any], as_numbers: bool) -> NDArray[Any]:
    if not np.ma.is_masked(values):
        return np.asarray(values)
    if as_numbers and values.dtype.kind in "biuf":
        return np.where(np.ma.getmaskarray(values), np.nan, values.data)
    return _objects(values.tolist())  # masked entries are None there


def _of_list(values: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
        return np.asarray(values)
    return _objects(values)


def _of_series(values: object, as_numbers: bool) -> NDArray[Any]:
    """Of pandas, polars, pyarrow and whatever else narwhals knows."""
    import narwhals

    package = sys.modules[type(values).__module__.partition(".")[0]]
    if package.__name__ == "pandas" and not hasattr(values, "iloc"):
        values = package.Series(values)  # an index, or an array of pandas
    if package.__name__ == "pyarrow" and hasattr(values, "to_pylist"):
        values = values if hasattr(values, "chunks") else package.chunked_array([values])
    series = narwhals.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, narwhals.Series):
        return np.asarray(values)
    if series.dtype.is_numeric() or series.dtype == narwhals.Boolean:
        if not series.is_null().any():
            return np.asarray(series.to_numpy())
        if as_numbers:
            return np.asarray(series.cast(narwhals.Float64).to_numpy())
    return _objects(series.to_list())


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """An array of objects, entry by entry: numpy would look into texts, tuples and lists."""
    entries = list(values)
    array = np.empty(len(entries), dtype=object)
    for row, entry in enumerate(entries):
        array[row] = entry
    return array


def _entries(array: NDArray[Any]) -> list[Any]:
    """The entries of an array of objects; arrays without a dimension are their only entry."""
    return [
        one.item() if isinstance(one, np.ndarray) and one.ndim == 0 else one
        for one in array.tolist()
    ]


def _numbers_or_objects(values: object) -> NDArray[Any]:
    """The same with objects turned into numbers where all of them are."""
    array = _column(values)
    numbers = _floats(array) if array.dtype.kind == "O" else None
    return array if numbers is None else numbers


def _floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """An array of objects as numbers, NaN where an entry is missing; None if one is no number."""
    numbers = np.empty(array.shape)
    if array.ndim != 1:
        return None
    for row, one in enumerate(_entries(array)):
        if is_missing(one):
            numbers[row] = np.nan
        elif _is_number(one) and _is_exact(one):
            numbers[row] = float(one)
        else:
            return None
    return numbers


def _is_number(entry: Any) -> bool:
    return isinstance(entry, Real | Decimal | np.bool_)


def _is_truth_value(entry: Any) -> bool:
    return isinstance(entry, bool | np.bool_)


def _is_exact(number: Any) -> bool:
    """Whether a number is no other one as a float: 1 + 1e-30 is not 1."""
    try:
        near = float(number)
    except OverflowError:
        return False
    return near not in (-1, 0, 1) or near == number
