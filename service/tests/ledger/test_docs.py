"""The page on the ledger names nothing that does not exist."""

import re
from pathlib import Path

import evenhand_service.ledger as package
from evenhand_service.ledger import Ledger
from evenhand_service.ledger.publishing import ACTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
SET_IN_INIT = {"keyring"}


def test_every_method_on_the_page_exists():
    named = set(re.findall(r"\bledger\.([a-z_]+)\b(?!\.py)", PAGE)) - SET_IN_INIT
    assert {name for name in named if not hasattr(Ledger, name)} <= {
        "verify",
        "standalone_verifier",
        "witness",
    }
    public = {
        name for name in dir(Ledger) if not name.startswith("_") and callable(getattr(Ledger, name))
    }
    assert {name for name in public if f".{name}(" not in PAGE} - {
        "open",
        "writer_class",
        "guard_class",
    } == set()


def test_every_public_name_is_on_the_page():
    tucked_away = {"DrawRequest", "Clock", "Report", "Facts", "Problem", "Mode"}
    tucked_away |= {"require_name", "verify_signature"}
    assert {name for name in package.__all__ if not re.search(rf"\b{name}\b", PAGE)} <= tucked_away


def test_every_action_is_on_the_page():
    assert all(f'"{action}"' in PAGE for action in ACTIONS)
