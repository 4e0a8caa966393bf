"""The service's trials over HTTP: `python -m tests.torture [row ...] [--quick]`. The ledger's own: `pytest -m torture`."""
