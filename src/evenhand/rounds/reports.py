"""What becomes known of people after the decision, and what may be reported when."""

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import ProtocolError
from evenhand.people import as_reported_labels
from evenhand.rounds.features import Column
from evenhand.rounds.groups import UNKNOWN
from evenhand.rounds.table import Rounds
from evenhand.rounds.windows import PATIENCE
from evenhand.words import BoolArray, Group, GroupArray, IntArray


def enter_labels(
    table: Rounds,
    round_ids: IntArray,
    labels: NDArray[np.generic],
    *,
    window_open: BoolArray | bool = True,
    closed: int = 0,
) -> None:
    """Labels have come. All are entered, or none if one of them is impossible.

    window_open: whether each came within the person's own window; closed: rounds before this
    one belong to closed cohorts, which keep the label as missing.
    """
    rows = _reportable_rows(table, round_ids, "its label cannot be reported")
    labels = as_reported_labels(round_ids, labels)
    _require_reportable(table, rows, round_ids, labels)
    changed = np.unique(rows)
    bill = table.bill_of(changed)
    new = table["label"][rows] == 0
    table["label"][rows[new]] = labels[new]
    table.recount_bill(changed, bill)
    early = np.broadcast_to(window_open, round_ids.shape)
    table["settled"][rows[new & early]] = labels[new & early]
    table["label_late"][rows[new & (round_ids < closed)]] = True
    table.has_new_labels = table.has_new_labels or len(rows) > 0


def enter_label(
    table: Rounds, round: int, label: int, *, now: float | None, window: float | None, closed: int
) -> bool:
    """The usual case, entry by entry: the first label of one accepted round. False if there is
    anything to say about it; then nothing has changed, and `enter_labels` says it.
    """
    if table.has_gaps or not 0 <= round < table.n_rows or label not in (-1, 1):
        return False
    data = table.data
    if not data["accept"][round] or data["label"][round]:
        return False
    if data["overruled"][round] or data["erased"][round]:
        return False
    data["label"][round] = label
    if data["audit"][round]:
        table.audits_pending -= 1
        table.audit_bill -= label == 1
    if window is None:
        in_time = table.decided <= round + data["call_left"][round] + PATIENCE
    else:
        in_time = now is None or not data["at"][round] + window <= now
    if in_time:
        data["settled"][round] = label
    if round < closed:
        data["label_late"][round] = True
    table.has_new_labels = True
    return True


def known_label(table: Rounds, round: int) -> int:
    """The label of a round; 0 where it has none, or no row any more."""
    row = int(np.searchsorted(table["round"], round))
    here = row < table.n_rows and table["round"][row] == round
    return int(table["label"][row]) if here else 0


def _require_reportable(table: Rounds, rows: IntArray, round_ids: IntArray, labels: Column) -> None:
    rejected = ~table["accept"][rows]
    if rejected.any():
        raise ProtocolError(
            f"round {round_ids[int(np.argmax(rejected))]} was rejected; its label cannot have "
            "been seen.",
            hint="check the round's number.",
        )
    overruled = table["overruled"][rows]
    if overruled.any():
        raise ProtocolError(
            f"round {round_ids[int(np.argmax(overruled))]} was overruled: a human rejected the "
            "person, so the label counts for nothing.",
            hint="do not report the labels of people who were rejected.",
        )
    # a label that was reported before, here or earlier in this report, stands
    known = table["label"][rows].astype(np.int64)
    if len(np.unique(rows)) < len(rows):
        first = dict(zip(rows[::-1].tolist(), labels[::-1].tolist(), strict=True))
        known = np.where(known == 0, [int(first[row]) for row in rows.tolist()], known)
    other = (known != 0) & (known != labels)
    if other.any():
        place = int(np.argmax(other))
        raise ProtocolError(
            f"round {round_ids[place]} was observed before with label {known[place]:+d} and now "
            f"has {int(labels[place]):+d}; the first one stands.",
            hint="settle disputed outcomes before they are observed.",
        )


def overrule(
    table: Rounds, round_ids: IntArray, accept: BoolArray, *, window_open: BoolArray | bool = True
) -> IntArray:
    """A human decided `accept` instead of what was drawn. Returns the rounds for which this
    changes something.

    The draw stays on record; the label of a person who was drawn to be accepted and was
    rejected counts for nothing from now on.
    """
    _require_rows(table, "overruled")
    rows = _reportable_rows(table, round_ids, "it cannot be overruled")
    news = (accept != table["accept"][rows]) & ~table["overruled"][rows]
    changed = np.unique(rows[news])
    bill = table.bill_of(changed)
    table["overruled"][changed] = True
    # a label that has come shows that the person was accepted
    table["billed"][changed] = table["label"][changed] == -1
    table.cache.forget()
    unsettled = np.broadcast_to(window_open, round_ids.shape)[news]
    _drop_labels(table, changed[table["accept"][changed]], rows[news][unsettled])
    table.recount_bill(changed, bill)
    return np.asarray(table["round"][changed])


def erase(table: Rounds, round_ids: IntArray, *, window_open: BoolArray | bool = True) -> IntArray:
    """Forget people: features, group, prices and label are wiped. Returns the rounds of which
    that is news.
    """
    _require_rows(table, "erased")
    rows = table.find(round_ids)
    news = ~table["erased"][rows]
    changed = np.unique(rows[news])
    bill = table.bill_of(changed)
    table["erased"][changed] = True
    table.cache.forget()
    table.features.wipe(changed)
    table["group"][changed] = UNKNOWN
    if table.owed is not None:
        table.owed[changed] = 0.0
    unsettled = np.broadcast_to(window_open, round_ids.shape)[news]
    _drop_labels(table, changed, rows[news][unsettled])
    table.recount_bill(changed, bill)
    return np.asarray(table["round"][changed])


def _drop_labels(table: Rounds, rows: IntArray, unsettled: IntArray) -> None:
    """These rows have no label any more. Where the person's own window has ended, the category
    of the drift tests stays as it was settled.
    """
    table["label"][rows] = 0
    table["settled"][np.intersect1d(rows, unsettled)] = 0
    if len(rows):
        table.complete_to = min(table.complete_to, int(table["round"][rows].min()))


def enter_groups(
    table: Rounds, round_ids: IntArray, groups: GroupArray, *, closed: int = 0
) -> None:
    """Groups have become known after the decision. They count in cohorts that are still open;
    rounds before `closed` stay as they are.
    """
    _require_rows(table, "given a group after the decision")
    rows = _reportable_rows(table, round_ids, "its group cannot be reported")
    check_groups(table, round_ids, groups)
    for row, round, group in zip(rows.tolist(), round_ids.tolist(), groups.tolist(), strict=True):
        if group is not None and round >= closed and table["group"][row] == UNKNOWN:
            table["group"][row] = table.group_codes.code_of(group)
            table["group_late"][row] = True
            table.cache.forget()


def check_groups(table: Rounds, round_ids: IntArray, groups: GroupArray) -> None:
    """ProtocolError if a group contradicts the one that is known; None contradicts nothing."""
    rows = _reportable_rows(table, round_ids, "its group cannot be reported")
    now: dict[int, Group] = {}
    for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
        code = int(table["group"][row])
        known = now.get(row, None if code == UNKNOWN else table.group_codes.values[code])
        if group is not None and known is not None and known != group:
            raise ProtocolError(
                f"round {table['round'][row]} was reported with another group before; a "
                "person's group does not change.",
                hint="check the round's number.",
            )
        now[row] = known if group is None else group


def _require_rows(table: Rounds, what: str) -> None:
    if table.keep == "counts":
        raise ProtocolError(
            f"counts alone are kept of people, so nobody can be {what}.",
            hint='make the learner with keep="rows".',
        )


def _reportable_rows(table: Rounds, round_ids: IntArray, refused: str) -> IntArray:
    """The row of each round; ProtocolError if one is unknown, or erased, which is why that is
    `refused`.
    """
    rows = table.find(round_ids)
    erased = table["erased"][rows]
    if erased.any():
        raise ProtocolError(
            f"round {round_ids[int(np.argmax(erased))]} was erased; {refused}.",
            hint="nothing more can be reported about a person who was erased.",
        )
    return rows
