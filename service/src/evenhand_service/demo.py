"""The demonstration: simulated people apply over HTTP, wait, and repay or not. One second is one
day.

Its folder is that of a real service: settings, keyring and ledger stay in it, so that it can be
verified, packed and started again afterwards.
"""

import heapq
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from evenhand.environments import ScoreGroup, Scores
from evenhand.errors import InvalidInput
from evenhand_service.client import (
    Application,
    Client,
    Decision,
    Outcome,
    Problem,
    Unreachable,
)
from evenhand_service.keys import MOST_DAYS, LedgerKeys
from evenhand_service.settings import DAY, Product, Settings, load_settings
from evenhand_service.state import Service

TICK = 0.25
"""Seconds between two batches of applications."""
PEOPLE_PER_TICK = 40
MOST_PEOPLE = 100_000
"""People who apply in all: about ten minutes and 300 MB; afterwards the service only shows."""
NEVER_REPORTED = 0.01
"""The share of outcomes that never come."""
LONGEST_WAIT = 6.0
"""Days until the last outcome comes."""
STATUS_SECONDS = 60.0
"""Seconds between two lines in the terminal."""
PATIENCE = 15.0
"""Seconds for which a failing request is tried again in silence: the service may be starting."""

SETTINGS = """\
# Written by `evenhand serve --demo`. All commands of the service take this file:
#     evenhand audit verify --config service.toml --deep
[service]
ledger = "ledger.sqlite"
keyring = "keyring.json"
train_every = 0.5           # seconds; here one second is one day
open_dashboard = true       # without a key, on this machine alone
log_requests = false

[[product]]
name = "loan"
features = ["score"]
class = "thresholds"
groups = ["north", "south"]
limit = 0.15
maturity_days = 8.0
seed = 7
"""
POPULATION = Scores(
    {
        "north": ScoreGroup(share=0.6, base_rate=0.65, positive_mean=1.2, negative_mean=-0.9),
        "south": ScoreGroup(share=0.4, base_rate=0.5, positive_mean=0.9, negative_mean=-1.2),
    }
)


class FastClock:
    """Seconds since the epoch, `speed` times as fast as those of the wall. It stands still until
    `start`, so that nothing is late because the service took long to begin.
    """

    def __init__(self, speed: float = DAY) -> None:
        self._began = time.time()
        self._wall: float | None = None
        self._speed = speed

    def go_on_from(self, at: float) -> None:
        """Begin at `at`, if that is later: the rows of an earlier start are dated ahead."""
        self._began = max(self._began, at)

    def start(self) -> None:
        """Let it run."""
        self._wall = time.monotonic()

    def __call__(self) -> float:
        if self._wall is None:
            return self._began
        return self._began + self._speed * (time.monotonic() - self._wall)


def demo_settings(folder: Path) -> Settings:
    """The settings of the demonstration, written into its folder at the first start.

    Raises InvalidInput if the folder holds something else.
    """
    file = folder / "service.toml"
    if not file.exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(
                f"{folder} exists and is no folder of an earlier demonstration.",
                hint="give --folder another name.",
            )
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(SETTINGS, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != SETTINGS:
        raise InvalidInput(
            f"{file} is not the one that this demonstration writes.",
            hint="give --folder another name; a service of your own starts with --config.",
        )
    return load_settings(file)


@dataclass
class DemoPopulation:
    """Clients of the bank: they apply in batches, and report outcomes 1 to 6 days later.

    Who applies is a function of the number of the batch. A second start therefore asks the last
    batches again, which changes nothing (the same key gets the same answer), and reports the
    outcomes that the first one still owed, when they are due.
    """

    url: str
    keys: LedgerKeys
    clock: FastClock
    product: Product
    say: Callable[[str], None]
    """Where problems are reported, in one line."""
    applied: int = 0
    """People who applied so far, those of an earlier start included."""
    seed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    _waiting: list[tuple[float, str, Literal[-1, 1]]] = field(default_factory=list)
    _asking: Client | None = None
    _key_ends: float = 0.0

    def start(self) -> threading.Thread:
        """In a thread, until `stop` is set."""
        thread = threading.Thread(target=self._run, name="evenhand-demo", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        begun = self.applied // PEOPLE_PER_TICK  # batches of an earlier start
        batch = max(begun - round((LONGEST_WAIT + 1) / TICK), 0)  # whose outcomes may be open
        running = False
        failing_since: float | None = None
        while not self.stop.wait(TICK if running or failing_since else 0):
            try:
                if batch * PEOPLE_PER_TICK < MOST_PEOPLE:
                    # one day is one second: the batch n batches ago came n * TICK days ago
                    self._apply(batch, days_ago=max(begun - batch, 0) * TICK)
                    batch += 1
                    self.applied = max(self.applied, batch * PEOPLE_PER_TICK)
                if not running and batch >= begun:
                    self.clock.start()
                    running = True
                self._report_outcomes()
                failing_since = None
            except (Problem, Unreachable) as error:  # refused, or not there yet
                failing_since = failing_since or time.monotonic()
                if time.monotonic() - failing_since > PATIENCE:
                    self.say(f"the simulated people are not answered: {error}")
                    failing_since += STATUS_SECONDS

    def _apply(self, batch: int, days_ago: float) -> None:
        generator = np.random.default_rng((self.seed, batch))
        sample = POPULATION.draw(PEOPLE_PER_TICK, generator)
        numbers = range(batch * PEOPLE_PER_TICK, (batch + 1) * PEOPLE_PER_TICK)
        asked = [
            Application(
                f"demo-{number}",
                f"person-{number}",
                self.product.name,
                sample.features[row].tolist(),
                str(sample.group[row]),
            )
            for row, number in enumerate(numbers)
        ]
        days = generator.uniform(1.0, LONGEST_WAIT, PEOPLE_PER_TICK)
        reported = generator.random(PEOPLE_PER_TICK) >= NEVER_REPORTED
        answers = self._client().decide_many(asked)
        now = self.clock()
        for row, one in enumerate(answers):
            if isinstance(one, Decision) and one.accept and reported[row]:
                due = now + DAY * max(days[row] - days_ago, 0.0)
                heapq.heappush(self._waiting, (due, one.key, 1 if sample.label[row] > 0 else -1))

    def _report_outcomes(self) -> None:
        now = self.clock()
        due: list[Outcome] = []
        while self._waiting and self._waiting[0][0] <= now:
            _, key, label = heapq.heappop(self._waiting)
            due.append(Outcome(key, label))
        self._client().report_many(due)

    def _client(self) -> Client:
        # ten years are an hour here: a key ends under way, and another one takes its place
        if self._asking is None or self.clock() > self._key_ends - 30 * DAY:
            scopes = ("decide", "observe")
            self._key_ends = self.clock() + MOST_DAYS * DAY
            token = self.keys.add(scopes, "simulated people", "the demo", MOST_DAYS)
            self._asking = Client(self.url, token, timeout=30.0, tries=1)
        return self._asking


def status_line(service: Service, product: Product) -> str:
    """Where the demonstration stands, for the terminal."""
    active = service.decider.active(product)
    counts = service.ledger.counts(product.name)
    if not counts.usable:
        return "nobody has applied yet"
    status = service.health.certificate(product)
    return (
        f"{counts.usable:,} people decided, {counts.accepted / counts.usable:.0%} accepted; "
        f"epoch {active.policy.epoch}, {status}, learned weight {active.learned_weight:.0%}"
    )


def say_status(
    line: Callable[[], str], say: Callable[[str], None], stop: threading.Event
) -> threading.Thread:
    """One line a minute, in a thread, until `stop` is set."""

    def run() -> None:
        while not stop.wait(STATUS_SECONDS):
            say(line())

    thread = threading.Thread(target=run, name="evenhand-demo-status", daemon=True)
    thread.start()
    return thread
