"""The one table of decided people: a row per round, in the order of arrival.

`Rounds` is what a learner (and the trainer of a service) remembers of people. Algorithms read it
and never write it; everything that an algorithm knows beyond it is in its own state, which holds
sums and no people. `Counts` is the aggregated form of some rows: equal rows once, with counts.

Four words for what is known of a round:

    resolved   the loss may learn from it: it was rejected, or its label has come
    settled    its category (good, bad, not come) is fixed for the drift tests
    matured    the maturity window of its person has passed
    closed     it has been summed into a certificate

The requirement behind every method is predictability; otherwise an operator could drop unlucky
people (docs/guarantee/proof.md, section 9):

    A cohort is fixed by what was known before its coins were tossed. Afterwards a row may only
    lose information, and lost information counts at its worst.

So a row is appended once, keeps its place, its coin and its probability for good, and never leaves
(where counts alone are kept: not before it is counted). What happens to it later only moves it
between columns:

    drawn accept, label known                    positive or negative
    drawn accept, label missing or overruled     unresolved: the worst case
    drawn reject, overruled or not               rejected
    erased                                       lost: draw and probability stay on record,
                                                 everything else is the worst case
    group unknown, or none of the certificate's  outside, counted there
"""

from evenhand.rounds.cache import Span
from evenhand.rounds.counts import Counts, GroupCounts, require_possible
from evenhand.rounds.groups import UNKNOWN
from evenhand.rounds.table import (
    FOREVER,
    KINDS,
    NEVER,
    Epoch,
    Keep,
    Rounds,
)
from evenhand.rounds.windows import PATIENCE

__all__ = [
    "FOREVER",
    "KINDS",
    "NEVER",
    "PATIENCE",
    "UNKNOWN",
    "Counts",
    "Epoch",
    "GroupCounts",
    "Keep",
    "Rounds",
    "Span",
    "require_possible",
]
