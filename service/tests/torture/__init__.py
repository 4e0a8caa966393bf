"""The service's table of trials: `python -m service.tests.torture [row ...] [--quick]`; small
sizes of most rows run in `make test`.
"""
