"""What is done to a learner may not fail, and threads hand over what they raised."""

import pytest
from tests.requirements.playing import nothing_fails, together

from evenhand.testing import RequirementBroken, requirement


@requirement
def halving_works(number):
    """A number can be halved."""
    with nothing_fails(f"halving {number!r}"):
        number / 2


def test_what_fails_breaks_the_requirement():
    halving_works(9)
    with pytest.raises(RequirementBroken, match=r"'x'.*TypeError") as broken:
        halving_works("x")
    assert isinstance(broken.value.__cause__, TypeError)


def test_what_threads_raise_is_handed_over():
    done = []

    def fails():
        raise ValueError("no")

    raised = together([lambda: done.append(1), fails, lambda: done.append(2)])
    assert sorted(done) == [1, 2]
    assert [str(error) for error in raised] == ["no"]
