"""The rows of requests at a small size, without their clocks; and their mutants."""

import pytest
from service.tests.torture.requests import (
    many_members,
    narrow_scopes,
    one_host,
    one_reading,
    one_spelling,
    public_paths,
)


@pytest.mark.thorough
@pytest.mark.parametrize("row", [many_members, public_paths])
def test_costly_requests_are_refused(row):
    _, figure, held = row(True)
    assert held, figure


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (one_spelling, "any spelling"),
        (one_reading, "last wins"),
        (one_host, "any host"),
        (narrow_scopes, "one scope"),
    ],
)
def test_a_mutant_fails_its_row(row, kind):
    _, figure, held = row(True, kind)
    assert not held, figure
