"""Which rows may go into an archive, and moving them there.

    closed   a window that has ended before the given day: no coin of it will be tossed
    finished every learner has closed the row, and its drift tests have been fed with it
    over     the period of a quota in which it counts

Rows leave up to the end of the last window for which all of this holds. What the learners need of
them stays (`ledger.archive`), so a trainer that starts afterwards publishes the same next policy,
bit for bit.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, union_all

from evenhand.contracts import Json
from evenhand_service.ledger import Invalid, Ledger
from evenhand_service.ledger.archive import LearnerRow, archive
from evenhand_service.ledger.database import DECISIONS, KINDS
from evenhand_service.settings import Product
from evenhand_service.trainer import Trainer


@dataclass(frozen=True)
class Closed:
    """What may go into an archive: the rows up to `upto`, and what the learners need of them."""

    upto: int
    learned: dict[int, LearnerRow]


def archive_closed(
    ledger: Ledger, products: Sequence[Product], before: float, folder: Path, *, by: str
) -> Json:
    """Move the rows of windows that ended before a time into a new folder.

    Parameters
    ----------
    ledger : Ledger
        The ledger, opened to be written.
    products : sequence of Product
        All products that have decided.
    before : float
        The time, in seconds since the epoch.
    folder : Path
        A directory that does not exist.
    by : str
        Who does it; it is recorded.

    Returns
    -------
    dict
        What the chain says of the archive.

    Raises
    ------
    Invalid
        If nothing can be archived; the message says what stands in the way.
    Damaged
        If the ledger or the written file does not verify; nothing is removed then.
    """
    closed = closed_rows(ledger, products, before)
    return archive(ledger, closed.upto, folder, closed.learned, by=by)


def closed_rows(ledger: Ledger, products: Sequence[Product], before: float) -> Closed:
    """The rows that may go into an archive; Invalid if there are none.

    The limit of each product is its first usable decision that its learner still needs, and the
    first row in the present period of its quota.
    """
    names = {product.name for product in products}
    with ledger.store.reader.connect() as connection:
        decided = set(connection.execute(select(DECISIONS.c.product).distinct()).scalars())
    unknown = sorted(decided - names)
    if unknown:
        raise Invalid(
            f"the ledger holds decisions of {', '.join(unknown)}, and the settings have no such "
            "product, so nobody knows what its learner needs.",
            hint="put the product back into the settings.",
        )
    now = max(ledger.clock(), ledger.head().at)
    limits = {
        "the day that was given, or the present window": _last_before(ledger, min(before, now))
    }
    learned: dict[int, LearnerRow] = {}
    for product in products:
        finished = Trainer(ledger, product, "archive").finished()
        rows = [row for row in finished if row.status != "archived"]
        last = finished[-1].seq if finished else 0
        if rows:
            # the dashboard counts groups and overruled decisions as they are known now
            every = ledger.history(product.name, after=rows[0].seq - 1, upto=ledger.head().seq)
            pairs = zip(rows, itertools.islice(every, len(rows)), strict=True)
            learned |= {row.seq: LearnerRow(row, later) for row, later in pairs}
        needed = _first_usable(ledger, product, last)
        if needed is not None:
            limits[f"decision {needed} of {product.name}, which its learner needs"] = needed - 1
        if product.hard_quota is not None:
            seconds = product.hard_quota.period
            period = math.floor(now / seconds) * seconds
            limits[f"the present period of the quota of {product.name}"] = _last_before(
                ledger, period
            )
    why, limit = min(limits.items(), key=lambda one: one[1])
    known = max((int(one["last"]) for one in ledger.archives()), default=0)
    ends = [window.ends for window in ledger.windows() if window.ends <= min(before, now)]
    last_rows = (_last_before(ledger, end) for end in sorted(ends, reverse=True))
    upto = next((row for row in last_rows if row <= limit), 0)
    if upto <= known:
        raise Invalid(
            f"there is nothing to archive: no window that ended by then has rows between "
            f"{known + 1} and {limit}; what stands in the way is {why}.",
            hint="archive a later day, or wait until the epoch of these people has been closed.",
        )
    return Closed(upto, {seq: row for seq, row in learned.items() if seq <= upto})


def _last_before(ledger: Ledger, at: float) -> int:
    """The last row before a time: times never fall along the chain."""
    newest = (
        select(func.max(table.c.seq).label("seq")).where(table.c.at < at)
        for table in KINDS.values()
    )
    with ledger.store.reader.connect() as connection:
        found = connection.execute(union_all(*newest)).scalars()
        here = max((int(seq) for seq in found if seq is not None), default=0)
    archived = [int(one["last"]) for one in ledger.archives() if one["until"] < at]
    return max([here, *archived])


def _first_usable(ledger: Ledger, product: Product, after: int) -> int | None:
    d = DECISIONS.c
    mine = select(func.min(d.seq)).where(d.product == product.name, d.usable, d.seq > after)
    with ledger.store.reader.connect() as connection:
        found = connection.execute(mine).scalar()
    return None if found is None else int(found)
