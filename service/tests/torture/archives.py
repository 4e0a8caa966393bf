"""Windows that have ended go into archives while the archiver is killed again and again, on both
databases, beside a twin that never archives.
"""

import contextlib
import os
import shutil
import signal

from service.tests.bank import DAY, KEYRING, LOAN, Clock
from service.tests.shop import Shop, record
from service.tests.torture.policies import database
from service.tests.torture.serving import folder

from evenhand_service import Trainer, render
from evenhand_service.archiving import archive_closed
from evenhand_service.ledger import Application, Archived, Ledger, Terms, WindowPlan, verify
from evenhand_service.ledger import archive as archives
from evenhand_service.ledger.archive import rows_left_out, whole
from evenhand_service.ledger.decision_draw import Drawer

EPOCHS = 4
TARGET = "no second coin, nothing lost, the twin's policies, less than half of the bytes"


def reopened(where, clock):
    return Ledger.open(
        where, keyring=KEYRING, clock=clock, windows=WindowPlan(30 * DAY), render=render
    )


def killed_while_archiving(where, now, place):
    """A process archives, and is killed when the rows have been deleted and not yet committed."""
    child = os.fork()
    if child == 0:
        deleting = archives.deleting

        @contextlib.contextmanager
        def dying(connection):
            with deleting(connection):
                yield
                os.kill(os.getpid(), signal.SIGKILL)

        archives.deleting = dying
        try:
            with reopened(where, Clock(now)) as ledger:
                archive_closed(ledger, [LOAN], now, place, by="op")
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def lived(where, people, place):
    """(shop, what each closing published, kills, folders): with `place`, archives after each
    closing.
    """
    shop = Shop(where, LOAN, seed=5)
    published, kills, folders = [], 0, []
    for epoch in range(EPOCHS):
        shop.repay(shop.arrive(people, told=0.9), 0.9)
        shop.clock.now += 31 * DAY
        shop.erase(list(shop.drawn)[epoch::97])
        shop.close(Trainer(shop.ledger, LOAN, "new"))
        published.append(record(shop.ledger, shop.lineage[-1]))
        if place is not None and epoch < EPOCHS - 1:
            # another process would wait for the file of SQLite
            shop.ledger.close()
            kills += killed_while_archiving(where, shop.clock.now, place / f"killed-{epoch}")
            shop.ledger = reopened(where, shop.clock)
            folders.append(place / f"archive-{epoch}")
            archive_closed(shop.ledger, [LOAN], shop.clock.now, folders[-1], by="op")
            shop.ledger.close()
            anew = Shop(where, LOAN, seed=5, clock=shop.clock, first=shop.number)
            for name in ("chosen", "truth", "group", "drawn", "gone"):
                setattr(anew, name, getattr(shop, name))
            shop = anew
    return shop, published, kills, folders


def coins(shop):
    """(archived keys, second coins, answers that changed) when everybody asks once more."""
    refused = second = changed = 0
    lasting = Terms(shop.lineage[-1].id, 0.5)
    for key, drawn in shop.drawn.items():
        if key in shop.gone:
            continue
        asked = Application(key, drawn.person, "loan", [0.5])
        (answer,) = shop.ledger.decide_many([(asked, lasting)])
        if isinstance(answer, Archived):
            refused += 1
        elif not isinstance(answer, Exception):
            second += 1
        elif shop.ledger.find(key).drawn != drawn:
            changed += 1
    return refused, second, changed


def measured(where, people, twin, kind):
    """(what is told, whether it holds)."""
    place = folder()
    look = Drawer._archived
    if kind == "forgetful":
        Drawer._archived = lambda *_: {}
    try:
        shop, published, kills, folders = lived(where, people, place)
        with whole(shop.ledger, folders) as complete:
            sound = verify(shop.ledger).ok and verify(complete, deep=True).ok
            lost = sum(
                complete.find(key).drawn != drawn
                for key, drawn in shop.drawn.items()
                if key not in shop.gone
            )
            full = complete.store.path.stat().st_size
        left = rows_left_out(shop.ledger)
        mine = shop.ledger.store.path
        size = full if mine is None else mine.stat().st_size
        refused, second, changed = coins(shop)
        shop.shut()
    finally:
        Drawer._archived = look
        shutil.rmtree(place)
    same = published == twin
    told = (
        f"{len(shop.drawn)} people, {left} rows in archives, {kills} kills, {refused} keys "
        f"refused, {second} second coins, {lost + changed} lost or changed, policies "
        f"{'the same' if same else 'others'}"
    )
    held = not (second or lost or changed) and same and sound and refused > len(shop.drawn) / 2
    if mine is not None:
        told += f", {full:,} bytes with the archives put back, {size:,} without"
        # at the small size policies and checkpoints, which stay, are most of it
        held &= people < 1000 or size < full / 2
    return told, held and kills == EPOCHS - 1


def archived_and_killed(quick, kind="real"):
    people = 100 if quick else 2500
    twin, expected, _, _ = lived(folder() / "twin.sqlite", people, None)
    twin.shut()
    told, held = [], True
    with database() as url:
        for where in (folder() / "ledger.sqlite", url):
            found, holds = measured(where, people, expected, kind)
            told.append(f"{'PostgreSQL' if where == url else 'SQLite'}: {found}")
            held &= holds
    return TARGET, "; ".join(told), held
