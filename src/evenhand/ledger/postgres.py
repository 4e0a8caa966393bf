"""What only PostgreSQL needs: which server and database this is, a role that can append and nothing
else, dumps, and pages without what was erased.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, inspect, make_url, text

from evenhand.ledger.database import (
    ADDITIONS,
    ENDED_SESSIONS,
    HEAD,
    KINDS,
    LEASES,
    PEOPLE,
    PERSONAL,
    SUMMARIES,
    TREE,
    VERSIONS,
)
from evenhand.ledger.guard import LOG
from evenhand.ledger.refusals import Damaged, Invalid

DUMP = "ledger.dump"
_INSTANCE = """SELECT (SELECT system_identifier FROM pg_control_system())::text
|| '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
|| '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
|| '/' || 'head'::regclass::oid"""


def instance(connection: Connection) -> str:
    """Which database this is: the server's own number, its timeline, and the numbers of database
    and table. None of them is in a dump, and each restore changes one; a copy of the server's whole
    directory has the same ones.
    """
    return str(connection.execute(text(_INSTANCE)).scalar_one())


def append_only_rights(role: str) -> list[str]:
    """The statements that let a role append to the ledger, and nothing else."""
    name = f'"{role}"'
    chain = ", ".join(table.name for table in KINDS.values())
    every = f"{chain}, " + ", ".join(
        t.name
        for t in (
            PEOPLE,
            PERSONAL,
            HEAD,
            LEASES,
            ENDED_SESSIONS,
            SUMMARIES,
            TREE,
            VERSIONS,
            ADDITIONS,
        )
    )
    return [
        f"REVOKE ALL ON {every} FROM PUBLIC, {name}",
        f"REVOKE CREATE ON SCHEMA public FROM PUBLIC, {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        f"GRANT SELECT ON {every} TO {name}",
        f"GRANT INSERT ON {chain}, people, personal, leases, {ENDED_SESSIONS.name}, tree TO {name}",
        f"GRANT UPDATE ON head, leases TO {name}",
        f"GRANT INSERT, UPDATE, DELETE ON {SUMMARIES.name} TO {name}",  # it follows from the chain
        f"GRANT UPDATE (key) ON people TO {name}",
        f"GRANT UPDATE (sealed) ON personal TO {name}",
        # only the owner can vacuum at once; for this role the server does it within a minute
        *(
            f"ALTER TABLE {table} SET "
            "(autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)"
            for table in ("people", "personal")
        ),
    ]


def grant(url: str, role: str) -> list[str]:
    """Let a role append to the ledger, and nothing else; the statements that were run.

    The caller owns the tables. The role can read and append rows of the chain, replace the head,
    the leases and the wrapped key of a person, and empty sealed fields. It owns nothing, so it can
    neither change nor remove a row of the chain, nor switch off what guards it.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", role):
        raise Invalid(f"{role!r} is no name of a role.", hint="letters, digits and _, at most 63.")
    statements = append_only_rights(role)
    with _engine(url) as engine, engine.begin() as connection:
        if not inspect(connection).has_table(HEAD.name):
            raise Invalid(
                "there is no ledger in this database yet.",
                hint="start the service once as the owner of the database.",
            )
        known = text("SELECT rolsuper FROM pg_roles WHERE rolname = :role")
        found = connection.execute(known, {"role": role}).scalar_one_or_none()
        if found is not False:
            what = "is a superuser" if found else "does not exist"
            raise Invalid(
                f"the role {role!r} {what}; it is to be an ordinary one.",
                hint=f"CREATE ROLE {role} LOGIN PASSWORD '...', as an administrator.",
            )
        for statement in statements:
            connection.execute(text(statement))
    return statements


def could_change(url: str) -> tuple[str, bool]:
    """(role of the URL, whether it could change or remove rows of the chain)."""
    right = """SELECT current_user::text, bool_or(pg_has_role(c.relowner, 'USAGE')
    OR has_table_privilege(c.oid, 'UPDATE') OR has_table_privilege(c.oid, 'DELETE')
    OR has_table_privilege(c.oid, 'TRUNCATE')) FROM pg_class c WHERE c.relname = ANY(:names)"""
    with _engine(url) as engine, engine.connect() as connection:
        names = [table.name for table in KINDS.values()]
        role, changeable = connection.execute(text(right), {"names": names}).one()
        return str(role), bool(changeable)


def vacuum(engine: Engine) -> bool:
    """Take what was erased out of the pages of the tables; False if this role may not."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        owner = text("SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE relname = 'people'")
        if not connection.execute(owner).scalar():
            LOG.warning("an erasure waits for autovacuum: this role does not own the tables")
            return False
        for table in (PEOPLE, PERSONAL):
            for _ in range(VACUUM_TRIES):
                connection.execute(text(f"VACUUM {table.name}"))
                if not connection.execute(text(_DEAD_ROWS), {"table": table.name}).scalar():
                    break
                time.sleep(VACUUM_PAUSE)
            else:
                LOG.warning("an erasure waits for autovacuum: somebody reads for long")
    return True


VACUUM_TRIES, VACUUM_PAUSE = 100, 0.05
"""Somebody who reads at that moment keeps dead rows in their pages, so it is done again: for a few
seconds, which is longer than any question of the service takes.
"""
_DEAD_ROWS = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = to_regclass(:table)"


def dump(url: str, target: Path) -> None:
    """One consistent state of the database, by pg_dump."""
    _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")
    target.chmod(0o600)


def load(url: str, source: Path) -> None:
    """Put a dump into an empty database, all or nothing, by pg_restore."""
    with _engine(url) as engine, engine.connect() as connection:
        if inspect(connection).has_table(HEAD.name):
            raise Invalid(
                "there is a ledger in this database; a restore replaces nothing.",
                hint="create an empty database, and put its URL into the settings.",
            )
    alone = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    _run("pg_restore", url, *alone, str(source))


@contextmanager
def _engine(url: str) -> Iterator[Engine]:
    engine = create_engine(f"postgresql+psycopg://{url.partition('://')[2]}")
    try:
        yield engine
    finally:
        engine.dispose()


def _run(tool: str, url: str, *words: str) -> None:
    """A tool of PostgreSQL; the password goes through the environment, where `ps` does not look."""
    found = shutil.which(tool) or next(
        (str(p) for p in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{tool}"), reverse=True)),
        None,
    )
    if found is None:
        raise Invalid(
            f"{tool} is not installed.", hint="Debian: apt-get install postgresql-client."
        )
    parts = make_url(f"postgresql://{url.partition('://')[2]}")
    plain = parts.set(password=None).render_as_string(hide_password=False)
    secret = {} if parts.password is None else {"PGPASSWORD": str(parts.password)}
    done = subprocess.run(
        [found, f"--dbname={plain}", *words],
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
        raise Damaged(
            f"{tool} failed: {lines[-1]}", hint="nothing was changed; look at its message."
        )
