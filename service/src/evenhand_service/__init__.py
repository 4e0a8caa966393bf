"""The decision service: HTTP API, trainer and dashboard in one process. See
`service/docs/first-service.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand_service.app import create_app as create_app
    from evenhand_service.decider import render as render
    from evenhand_service.keys import SCOPES as SCOPES
    from evenhand_service.keys import LedgerKeys as LedgerKeys
    from evenhand_service.settings import Product as Product
    from evenhand_service.settings import Settings as Settings
    from evenhand_service.settings import load_settings as load_settings
    from evenhand_service.trainer import Trainer as Trainer

_PLACES = {
    "SCOPES": "keys",
    "LedgerKeys": "keys",
    "Product": "settings",
    "Settings": "settings",
    "Trainer": "trainer",
    "create_app": "app",
    "load_settings": "settings",
    "render": "decider",
}
"""Where each name is: a command that needs none of them loads none of their packages."""

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    """A name of this package, loaded when it is asked for."""
    if name in _PLACES:
        return getattr(import_module(f"evenhand_service.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand_service' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
