"""What only PostgreSQL needs: which server and database this is, a role that can append and nothing
else, dumps, and pages without what was erased.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from evenhand_service.ledger.database import (
    ENDED_SESSIONS,
    HEAD,
    KINDS,
    METADATA,
    PEOPLE,
    PERSONAL,
    SUMMARIES,
)
from evenhand_service.ledger.guard import LOG
from evenhand_service.ledger.refusals import Damaged, DatabaseAway, Invalid

DUMP = "ledger.dump"
_INSTANCE = """SELECT (SELECT system_identifier FROM pg_control_system())::text
|| '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
|| '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
|| '/' || 'head'::regclass::oid"""


SECRETS = re.compile(r"pass(?!file)|pwd|secret|token|sig|key|credential", re.I)
"""Settings in the query of a URL that open something."""


def without_secrets(url: str) -> str:
    """The URL as messages and logs may show it: no password, no secret in its query. A text that is
    no URL stays as it is; one that nearly is gets the same care.

    >>> without_secrets("postgresql://ann:pw@host/db?password=pw&sslmode=require")
    'postgresql://ann:***@host/db?password=***&sslmode=require'
    """
    found = re.match(r"(?s)([A-Za-z][\w+.-]*:/*)(.*)", url)
    if found is None:
        return url
    scheme, rest = found.groups()
    # up to the last @, for a password may hold / ? and @ although it should not
    person, at, place = rest.rpartition("@")
    name, colon, _ = person.partition(":")
    shown = f"{scheme}{name}:***@" if colon else f"{scheme}{person}{at}"
    place, mark, query = place.partition("?")
    host, slash, path = place.partition("/")
    before, colon, port = host.rpartition(":")
    if "/" in scheme and colon and "]" not in port and not re.fullmatch("[0-9]*", port):
        # a port that is no number may be a password whose host was forgotten
        place = f"{before}:***{slash}{path}"
    parts = []
    for part in query.split("&"):
        key, equals, value = part.partition("=")
        secret = SECRETS.search(urllib.parse.unquote(key)) is not None
        parts.append(f"{key}{equals}{'***' if secret and value else value}")
    return shown + place + mark + "&".join(parts)


def parsed(url: str) -> URL:
    """The parts of a URL of PostgreSQL; Invalid, without its secrets, if it is none."""
    try:
        parts = make_url(f"postgresql+psycopg://{url.partition('://')[2]}")
        if parts.port is not None and not 0 < parts.port < 65536:
            raise ValueError
    except (ArgumentError, ValueError):
        raise Invalid(
            f"{without_secrets(url)} is no URL of a database: its parts cannot be separated, or "
            "its port is no number from 1 to 65535.",
            hint="postgresql://user@host:5432/database; write @ : / ? in a password as %40 %3A %2F "
            "%3F, or keep it in PGPASSFILE.",
        ) from None
    return parts


def instance(connection: Connection) -> str:
    """Which database this is: the server's own number, its timeline, and the numbers of database
    and table. None of them is in a dump, and each restore changes one; a copy of the server's whole
    directory has the same ones.
    """
    return str(connection.execute(text(_INSTANCE)).scalar_one())


def same_but_promoted(before: str, now: str) -> bool:
    """Whether two instances are one database, and the second one a standby of the first that was
    promoted: only the timeline is another, and it is a later one.

    >>> same_but_promoted("7/00000001/5/9", "7/00000002/5/9")
    True
    >>> same_but_promoted("7/00000002/5/9", "7/00000001/5/9")
    False
    """
    old = before.split("/")
    new = now.split("/")
    return len(old) == len(new) == 4 and [*old[:1], *old[2:]] == [*new[:1], *new[2:]] and new > old


def append_only_rights(role: str) -> list[str]:
    """The statements that let a role append to the ledger, and nothing else."""
    name = f'"{role}"'
    chain = ", ".join(table.name for table in KINDS.values())
    every = ", ".join(METADATA.tables)
    return [
        f"REVOKE ALL ON {every} FROM PUBLIC, {name}",
        f"REVOKE CREATE ON SCHEMA public FROM PUBLIC, {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        f"GRANT SELECT ON {every} TO {name}",
        f"GRANT INSERT ON {chain}, people, personal, leases, {ENDED_SESSIONS.name} TO {name}",
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


VACUUM_TRIES = 100
VACUUM_PAUSE = 0.05
"""Somebody who reads at that moment keeps dead rows in their pages, so it is done again: for a few
seconds, which is longer than any question of the service takes.
"""
_DEAD_ROWS = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = to_regclass(:table)"


def dump(url: str, target: Path) -> None:
    """One consistent state of the database, by pg_dump, in a file that only its owner can read."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")
    except BaseException:
        target.unlink(missing_ok=True)
        raise


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
    """An engine; what the database refuses inside of it becomes one clear refusal."""
    engine = create_engine(parsed(url))
    try:
        yield engine
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        where = without_secrets(url)
        if isinstance(error, OperationalError):
            raise DatabaseAway(
                f"the database {where} is away or lets nobody in: {reason}.",
                hint="check that it runs, the URL in the settings, and the password (PGPASSFILE).",
            ) from error
        raise Invalid(
            f"the database {where} refuses: {reason}.",
            hint="the settings should name the URL of the tables' owner.",
        ) from error
    finally:
        engine.dispose()


def _run(tool: str, url: str, *words: str) -> None:
    """A tool of PostgreSQL. Secrets of the URL are not among its arguments, which `ps` shows: the
    password goes through the environment, others through a file that only its owner can read.
    """
    found = shutil.which(tool) or next(
        (str(p) for p in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{tool}"), reverse=True)),
        None,
    )
    if found is None:
        raise Invalid(
            f"{tool} is not installed.", hint="Debian: apt-get install postgresql-client."
        )
    parts = parsed(url)
    given = dict(os.environ)
    secret = {name: value for name, value in parts.query.items() if SECRETS.search(name)}
    parts = parts.difference_update_query(secret)
    password = secret.pop("password", parts.password)
    if password is not None:
        given["PGPASSWORD"] = str(password)
    with ExitStack() as stack:
        if secret:
            if "service" in parts.query:
                raise Invalid(
                    f"{without_secrets(url)} names a service and holds {', '.join(secret)}.",
                    hint="put all of it into the file of the service.",
                )
            file = stack.enter_context(tempfile.NamedTemporaryFile("w", prefix="evenhand-"))
            lines = "".join(f"{name}={value}\n" for name, value in secret.items())
            file.write(f"[evenhand]\n{lines}")
            file.flush()
            parts = parts.update_query_dict({"service": "evenhand"})
            given["PGSERVICEFILE"] = file.name
        plain = URL.create(  # URL.set leaves a password as it is
            "postgresql", parts.username, None, parts.host, parts.port, parts.database, parts.query
        ).render_as_string(hide_password=False)
        command = [found, f"--dbname={plain}", *words]
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
        raise Damaged(
            f"{tool} failed: {said[-1]}", hint="nothing was changed; look at its message."
        )
