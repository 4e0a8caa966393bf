"""Print target and figure of each row; 1 if one does not hold."""

import argparse
import contextlib
import sys
import time

from tests.ledger import conftest as postgres
from tests.torture.rows import ROWS


@contextlib.contextmanager
def database():
    """The URL of a fresh PostgreSQL database, or None where there is no PostgreSQL."""
    if postgres._postgres_tools() is None:
        yield None
        return
    import psycopg

    serving = contextlib.contextmanager(postgres.postgres_server.__wrapped__)
    with serving() as server:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE torture")
        yield f"{server}/torture"


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("rows", nargs="*", help="parts of the names of rows; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    asked = parser.parse_args(words)
    chosen = {n: row for n, row in ROWS.items() if not asked.rows or any(part in n for part in asked.rows)}
    broken = 0
    for name, row in chosen.items():
        began = time.monotonic()
        if name.startswith("four trainers"):
            with database() as url:
                target, figure, held = row(asked.quick, url)
        else:
            target, figure, held = row(asked.quick)
        broken += not held
        took = f"{time.monotonic() - began:.0f} s"
        print(
            f"{'held  ' if held else 'BROKEN'} {name} ({took})\n       target: {target}\n       figure: {figure}",
            flush=True,
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
