"""`load`: a stored learner continues where it was, bit for bit."""

import os

from evenhand.contracts import HypothesisClass
from evenhand.errors import StorageError
from evenhand.learners import storage
from evenhand.learners.epochs import LEARNERS, EpochLearner


def load(path: str | os.PathLike[str], *, hypotheses: HypothesisClass | None = None) -> EpochLearner:
    """The learner that `save` stored: the same coins, the same policies, the same report from here on.

    `hypotheses` is needed where the class is made of Python functions or foreign models, which cannot be stored as data.
    """
    stored = storage.read(path, hypotheses)
    if stored.learner not in LEARNERS:
        raise StorageError(
            f"{path} holds a {stored.learner!r}; known are {', '.join(sorted(LEARNERS))}.",
            hint="import the module that defines it first.",
        )
    learner = LEARNERS[stored.learner](**stored.settings)
    learner._restore(stored.state)
    return learner
