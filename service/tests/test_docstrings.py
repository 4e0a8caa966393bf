"""The public names of the service and of the ledger are documented as those of the library."""

import pytest
from tests.test_docstrings import faults, methods, named

NAMED = named(("evenhand_service.ledger", "evenhand_service", "evenhand_service.client"))
METHODS = methods(NAMED)


@pytest.mark.parametrize("where", NAMED)
def test_a_public_name_is_documented_with_an_example(where):
    assert faults(NAMED[where], with_example=True) == [], where


@pytest.mark.parametrize("where", METHODS)
def test_a_public_method_says_what_it_takes_and_returns(where):
    assert faults(METHODS[where], with_example=False) == [], where
