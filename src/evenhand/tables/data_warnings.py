"""Warnings about a table: columns that reveal the group or the outcome, groups of a handful, and
values that hardly anybody has.

How much a column reveals is a share of entropy,

    I(column; group) / H(group),   between 0 (nothing) and 1 (everything),

measured on the table, less the part that chance alone is expected to show,
(bins - 1)(groups - 1) / 2n. A column of numbers has at most BINS bins of equally many people. A
text column that was encoded as several 0/1 columns is measured as one column with its values: each
of fifty first names reveals little about the group, and together they may reveal everything.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.shown import counted
from evenhand.tables.frame import Note, Table
from evenhand.words import FloatArray, GroupArray, IntArray

BINS = 12
MOST_ROWS = 100_000
"""Rows on which columns are measured at most."""
REVEALS_GROUP = 0.25
REVEALS_LABEL = 0.9
"""From which share on a column is said to reveal the group, or the outcome."""
MANY_LEFT_OUT = 0.2
"""From which share of left out rows on the rest is hardly the same population."""
MOST_NAMED = 5
HANDFUL = 10
"""A group with fewer people of an outcome bends the policy for all applicants."""


@dataclass(frozen=True)
class DataWarning:
    """One warning about a table.

    Parameters
    ----------
    kind : {"rows left out", "reveals the group", "reveals the outcome", "a handful", "rare values"}
        What it is about.
    name : str
        The column of the source (the one that lacks most values, or has the rarest), or the group.
    share : float
        The share of entropy that the column reveals; for a group, or a rare value, its share of the
        people; the share of the rows that were left out.
    text : str
        The warning in words.
    argument : str
        The argument of `read_table` that helps: "fill_missing", "leave_out" or "groups".

    Examples
    --------
    >>> DataWarning("a handful", "x", 0.01, "group 'x' has 3 people", "groups").name
    'x'
    """

    kind: Literal[
        "rows left out", "reveals the group", "reveals the outcome", "a handful", "rare values"
    ]
    name: str
    share: float
    text: str
    argument: str


def share_revealed(column: FloatArray, about: GroupArray | IntArray) -> float:
    """Measure which share of the entropy of `about` a column of numbers reveals.

    Parameters
    ----------
    column : array of float
        The column.
    about : array
        A group or a label for each row.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(share_revealed(np.array([0.0, 0.0, 1.0, 1.0] * 25), np.array(list("aabb") * 25)), 2)
    0.99
    """
    values, bins = np.unique(column, return_inverse=True)
    if len(values) > BINS:
        edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
        bins = np.searchsorted(edges, column, side="right")
    return _share_of_entropy(bins, about)


def _share_of_entropy(bins: IntArray, about: GroupArray | IntArray) -> float:
    """I(bins; about) / H(about), less what chance shows; each row has the number of its bin."""
    groups, group = np.unique(about, return_inverse=True)
    joint = np.zeros((int(bins.max()) + 1, len(groups)))
    np.add.at(joint, (bins, group), 1.0)
    n = joint.sum()
    rows = joint.sum(axis=1)
    columns = joint.sum(axis=0)
    entropy = -float(np.sum(columns / n * np.log(np.maximum(columns, 1) / n)))
    if entropy <= 0:
        return 0.0
    expected = np.outer(rows, columns)
    seen = joint > 0
    information = float(np.sum(joint[seen] / n * np.log(joint[seen] * n / expected[seen])))
    chance = (np.count_nonzero(rows) - 1) * (len(groups) - 1) / (2 * n)
    return min(1.0, max(0.0, float(information - chance)) / entropy)


def source_share_revealed(columns: FloatArray, about: GroupArray | IntArray) -> float:
    """Measure which share of the entropy of `about` the columns of one source reveal together.

    Parameters
    ----------
    columns : array of float, shape (rows, columns)
        One column of numbers, or all 0/1 columns that were made of one text column.
    about : array
        A group or a label for each row.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> one_hot = np.eye(4)[np.arange(400) % 4]
    >>> group = np.array(["a", "b"])[np.arange(400) % 2]
    >>> first = share_revealed(one_hot[:, 0], group)
    >>> round(first, 2), round(source_share_revealed(one_hot, group), 2)
    (0.31, 0.99)
    """
    if columns.shape[1] == 1:
        return share_revealed(columns[:, 0], about)
    if ((columns != 0) & (columns != 1)).any():  # a number, and the column that marks gaps in it
        return max(share_revealed(column, about) for column in columns.T)
    # At most one of the 0/1 columns is 1 in a row, so that their sum with different weights is the
    # number of the value that the text column had.
    value = columns @ np.arange(1.0, columns.shape[1] + 1)
    return _share_of_entropy(value.astype(np.int64), about)


def data_warnings(table: Table, group_name: str = "the group") -> tuple[DataWarning, ...]:
    """Find what a user of a table should know before a policy is chosen on it.

    Parameters
    ----------
    table : Table
        The encoded table.
    group_name : str
        What the column of the group is called.

    Returns
    -------
    tuple of DataWarning
        The warnings, the strongest of each kind first.

    Examples
    --------
    >>> from evenhand.tables import read_table
    >>> data_warnings(read_table("lending").encoded())
    ()
    """
    measured = table if len(table.label) <= MOST_ROWS else table.subset(MOST_ROWS)
    group: list[DataWarning] = []
    outcome: list[DataWarning] = []
    for name in dict.fromkeys(table.sources):
        places = [place for place, source in enumerate(table.sources) if source == name]
        columns = measured.features[:, places]
        share = source_share_revealed(columns, measured.group)
        if share >= REVEALS_GROUP:
            text = (
                f"{name!r} reveals {share:.0%} of {group_name!r} (share of its entropy, measured "
                "here); a rule that uses it looks at the group in disguise"
            )
            group.append(DataWarning("reveals the group", name, share, text, "leave_out"))
        share = source_share_revealed(columns, measured.label)
        if share >= REVEALS_LABEL:
            text = (
                f"{name!r} reveals {share:.0%} of the outcome (share of its entropy); if it is "
                "known only afterwards, leave it out"
            )
            outcome.append(DataWarning("reveals the outcome", name, share, text, "leave_out"))
    handfuls: list[DataWarning] = []
    for value in sorted(set(table.group.tolist()), key=str):
        here = table.label[table.group == value]
        good = int((here == 1).sum())
        bad = int((here != 1).sum())
        if min(good, bad) < HANDFUL:
            text = (
                f"group {str(value)!r} has {counted(len(here))}, {good} with a good and {bad} with "
                "a bad outcome; the limit holds for it, too, and bends the policy for all "
                f"{len(table.label):,}: join it with another, or leave it out"
            )
            share = len(here) / len(table.label)
            handfuls.append(DataWarning("a handful", str(value), share, text, "groups"))
    return (
        *_rows_left_out(table),
        *sorted(group, key=lambda warning: -warning.share),
        *sorted(outcome, key=lambda warning: -warning.share),
        *sorted(handfuls, key=lambda warning: warning.share),
        *_rare_values(table),
    )


def many_left_out(left_out: int, rows: int) -> tuple[Note, ...]:
    """Say so if so many rows lack a value that the others may be different people.

    Parameters
    ----------
    left_out, rows : int
        How many rows were left out, and how many there were.

    Returns
    -------
    tuple of Note
        One note of the kind "many left out", or none.

    Examples
    --------
    >>> many_left_out(10, 100)
    ()
    >>> print(*many_left_out(30, 100))
    30 of 100 rows (30%) were left out because a value is missing. All that follows is about the 70
    others, who may be different people
    """
    if left_out <= MANY_LEFT_OUT * rows:
        return ()
    text = (
        f"{left_out:,} of {rows:,} rows ({left_out / rows:.0%}) were left out because a value is "
        f"missing. All that follows is about the {rows - left_out:,} others, who may be different "
        "people"
    )
    return (Note("many left out", text),)


def _rare_values(table: Table) -> list[DataWarning]:
    """Columns of 0 and 1 in which fewer than a handful of people have the other value."""
    rare = []
    for place, name in enumerate(table.names):
        column = table.features[:, place]
        ones = int(np.count_nonzero(column == 1.0))
        zeros = int(np.count_nonzero(column == 0.0))
        if ones + zeros == len(column) and 0 < min(ones, zeros) < HANDFUL:
            rare.append((min(ones, zeros), place, f"{name!r} is {int(ones < zeros)}"))
    if not rare:
        return []
    rare.sort()
    said = [f"{text} for {counted(people)}" for people, _, text in rare[:MOST_NAMED]]
    more = f", and {len(rare) - MOST_NAMED} more columns like these" if rare[MOST_NAMED:] else ""
    text = (
        f"{', '.join(said)}{more}: what a rule makes of such a value rests on these people alone; "
        "join it with another value, or leave the column out"
    )
    fewest, place, _ = rare[0]
    name = table.sources[place]
    return [DataWarning("rare values", name, fewest / len(table.label), text, "leave_out")]


def _rows_left_out(table: Table) -> list[DataWarning]:
    """Whether so many rows lack a value that the others may be other people."""
    gaps = table.gaps
    if gaps is None or gaps.share_left_out <= MANY_LEFT_OUT:
        return []
    text = (
        f"{gaps.left_out:,} of {gaps.rows:,} rows ({gaps.share_left_out:.0%}) were left out "
        f"because a value is missing: {gaps.describe()}. All that follows is about "
        f"the {len(table):,} others, who may be different people"
    )
    worst = next(iter(gaps.per_column))
    return [DataWarning("rows left out", worst, gaps.share_left_out, text, "fill_missing")]
