"""Whether the service can decide: live says that the process answers, ready that an answer would be
durable and under the policy of now.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.certificate import Certificate
from evenhand.ledger import Ledger
from evenhand.ledger.decision_draw import GAPS, without_gap
from evenhand.service.decider import Decider
from evenhand.service.settings import Product, Settings
from evenhand.service.threads import in_thread

LOOKED_FOR = 1.0
"""Seconds for which an answer is remembered: who asks more often costs nothing."""
PATIENCE = 3.0
"""Seconds that the database has to answer."""
LEAST_ROOM = 64 * 2**20
"""Free bytes below which a disk counts as full."""


LATE_WITNESS = 3600.0
"""Seconds after which the fastest witness counts as late."""


@dataclass
class Health:
    """What is known of the service's state. Words alone are told to whoever has no key."""

    ledger: Ledger
    decider: Decider
    settings: Settings
    witness_lag: Callable[[], Mapping[str, tuple[float, int, int]]] = dict
    draining: bool = False
    _told: tuple[float, Json] | None = None
    _looking: "asyncio.Future[Json] | None" = None

    def database(self) -> str:
        """ "ok", "broken" (nothing is written any more) or "unreachable"."""
        if self.ledger.broken is not None:
            return "broken"
        try:
            self.ledger.head()
        except Exception:  # noqa: BLE001 - whatever it is, nothing can be read
            return "unreachable"
        return "ok"

    def room(self) -> int | None:
        """Free bytes on the disk of a SQLite ledger; None for a database elsewhere."""
        if "://" in self.settings.ledger:
            return None
        try:
            disk = os.statvfs(Path(self.settings.ledger).absolute().parent)
        except OSError:
            return 0
        return disk.f_bavail * disk.f_frsize

    def certificate(self, product: Product) -> str:
        """The status of the certificate of the policy in force, or "none"."""
        active = self.decider.active(product)
        rows = self.ledger.certificates(*product.names)
        row = next((row for row in reversed(rows) if row.epoch == active.policy.epoch), None)
        return "none" if row is None else Certificate.from_json(row.document).status

    async def writes(self) -> bool:
        """Whether decisions can be made durable, as far as is known."""
        return self.ledger.broken is None and (await self._found())["database"] == "ok"

    async def ready(self) -> Json:
        """{"ready": whether it can decide, and a word on each thing that this needs}."""
        words = dict(await self._found())
        if self.draining:
            words["stopping"] = "yes"
        stops = {"broken", "unreachable", "full", "old", "yes", "unconfirmed"}
        return {"ready": not stops & set(words.values()), **words}

    async def _found(self) -> Json:
        """What was found LOOKED_FOR seconds ago at most. Whoever asks shares one look, and no
        second one begins while a database keeps the first one waiting: asking needs no key.
        """
        if self._told is not None and time.monotonic() - self._told[0] <= LOOKED_FOR:
            return self._told[1]
        if self._looking is None:
            self._looking = in_thread(self._look)  # whatever else is going on
        looking = self._looking
        await asyncio.wait({looking}, timeout=PATIENCE)
        found: Json = {"database": "unreachable"}
        if looking.done():
            self._looking = None
            found = found if looking.exception() is not None else looking.result()
        self._told = (time.monotonic(), found)
        return found

    def _look(self) -> Json:
        words = {"database": self.database()}
        room = self.room()
        if room is not None:
            words["disk"] = "ok" if room >= LEAST_ROOM else "full"
        late = self.decider.refresh_age > self.decider.refresh_limit
        words["refresh"] = "old" if late else "ok"
        if words["database"] == "ok":
            try:
                found = {self.certificate(product) for product in self.settings.products}
            except EvenhandError:
                found = set()
            words["certificate"] = "suspended" if "suspended" in found else "ok"
            lags = [seconds for seconds, _, _ in self.witness_lag().values()]
            late = bool(lags) and min(lags) > LATE_WITNESS
            words["witness"] = "none" if not lags else "late" if late else "ok"
            try:
                with self.ledger.store.reader.connect() as connection:
                    free = without_gap(connection.execute(GAPS))
            except SQLAlchemyError:
                return words | {"database": "unreachable"}
            # after a restore: whether somebody has confirmed the gap, for all or for some tenants
            tenants = {product.tenant for product in self.settings.products}
            if None not in free and not tenants <= free:
                words["gap"] = "of some" if tenants & free else "unconfirmed"
        return words
