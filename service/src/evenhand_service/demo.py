"""The demonstration: simulated people apply over HTTP, wait, and repay or not. One second is one
day.
"""

import heapq
import json
import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np

from evenhand.contracts import Json
from evenhand.environments import ScoreGroup, Scores
from evenhand_service.settings import DAY, Product, Settings

LOG = logging.getLogger("evenhand_service.demo")
TICK = 0.25
"""Seconds."""
PEOPLE_PER_TICK = 40
NEVER_TOLD = 0.01
"""The share of labels that never come."""
PRODUCT = Product(
    "loan",
    ("score",),
    hypotheses="thresholds",
    limit=0.15,
    maturity_days=8.0,
    groups=("north", "south"),
    seed=7,
)
POPULATION = Scores(
    {
        "north": ScoreGroup(share=0.6, base_rate=0.65, positive_mean=1.2, negative_mean=-0.9),
        "south": ScoreGroup(share=0.4, base_rate=0.5, positive_mean=0.9, negative_mean=-1.2),
    }
)


class FastClock:
    """Seconds since the epoch, `speed` times as fast as those of the wall."""

    def __init__(self, speed: float = DAY) -> None:
        self._began = time.time()
        self._wall = time.monotonic()
        self._speed = speed

    def __call__(self) -> float:
        return self._began + self._speed * (time.monotonic() - self._wall)


def demo_settings(directory: Path) -> Settings:
    """Everything in one directory, the dashboard open to this machine."""
    return Settings(
        products=(PRODUCT,),
        ledger=str(directory / "ledger.sqlite"),
        keyring=str(directory / "keyring.json"),
        train_every=0.5,
        open_dashboard=True,
    )


@dataclass
class DemoPopulation:
    """Clients of the bank: they apply in batches, and tell outcomes 1 to 6 days later."""

    url: str
    token: str
    clock: FastClock
    seed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    applied: int = 0
    _waiting: list[tuple[float, str, int]] = field(default_factory=list)

    def start(self) -> threading.Thread:
        """In a thread, until `stop` is set."""
        thread = threading.Thread(target=self._run, name="evenhand-demo", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        generator = np.random.default_rng(self.seed)
        while not self.stop.wait(TICK):
            try:
                sample = POPULATION.draw(PEOPLE_PER_TICK, generator)
                asked = [
                    {
                        "key": f"demo-{self.applied + row}",
                        "person": f"person-{self.applied + row}",
                        "product": PRODUCT.name,
                        "features": sample.features[row].tolist(),
                        "group": str(sample.group[row]),
                    }
                    for row in range(PEOPLE_PER_TICK)
                ]
                answer = self._post("/v1/decisions/batch", {"decisions": asked})
                self.applied += PEOPLE_PER_TICK
                for one, label in zip(answer["decisions"], sample.label, strict=True):
                    if one.get("accept") and generator.random() >= NEVER_TOLD:
                        when = self.clock() + DAY * generator.uniform(1.0, 6.0)
                        heapq.heappush(self._waiting, (when, one["key"], int(label)))
                due: list[dict[str, object]] = []
                while self._waiting and self._waiting[0][0] <= self.clock() and len(due) < 1000:
                    _, key, label = heapq.heappop(self._waiting)
                    due.append({"key": key, "label": label})
                if due:
                    self._post("/v1/outcomes/batch", {"outcomes": due})
            except OSError as error:  # refused, or not there yet
                LOG.debug("the demo's client waits: %s", type(error).__name__)

    def _post(self, path: str, body: object) -> Json:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers)
        with urlopen(request, timeout=30.0) as answer:
            decoded: Json = json.load(answer)
            return decoded
