"""The tree of refusals in the docstring is the tree of the classes, and each is public."""

import re

from evenhand.errors import EvenhandError
from evenhand_service import ledger
from evenhand_service.ledger import Refusal, refusals


def test_the_drawn_tree_is_the_tree_of_the_classes():
    drawn = set(re.findall(r"^[├└]── (\w+) ", refusals.__doc__, re.MULTILINE))
    assert drawn == {kind.__name__ for kind in Refusal.__subclasses__()}
    assert issubclass(Refusal, EvenhandError)


def test_every_refusal_is_public_and_says_its_hint():
    for kind in (Refusal, *Refusal.__subclasses__()):
        assert getattr(ledger, kind.__name__) is kind
        refusal = kind("the thing breaks its law.", hint="mend it.")
        assert str(refusal) == "the thing breaks its law. Hint: mend it."
        assert refusal.hint == "mend it."
