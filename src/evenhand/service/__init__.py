"""The decision service: HTTP API, trainer and dashboard in one process. Needs the extra `service`;
see `docs/operating.md`.
"""

from evenhand.service.app import create_app
from evenhand.service.decider import render
from evenhand.service.keys import SCOPES, KeyStore, LedgerKeys
from evenhand.service.settings import Product, Settings, load_settings
from evenhand.service.trainer import Trainer

__all__ = [
    "SCOPES",
    "KeyStore",
    "LedgerKeys",
    "Product",
    "Settings",
    "Trainer",
    "create_app",
    "load_settings",
    "render",
]
