"""`evenhand db grant` on a real PostgreSQL."""

import psycopg
from click.testing import CliRunner
from tests.ledger.conftest import *  # noqa: F403 - the fixtures of the ledger
from tests.ledger.helpers import KEYRING, opened
from tests.service.bank import TOML

from evenhand.cli import main


def _config(folder, ledger):
    file = folder / "owner.toml"
    file.write_text(TOML.replace('ledger = "ledger.sqlite"', f'ledger = "{ledger}"'))
    return str(file)


def test_a_role_gets_what_it_needs(postgres_url, tmp_path):
    opened(postgres_url).close()
    role = f"cli_{postgres_url.rpartition('_')[2]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    words = ["db", "grant", role, "--config", _config(tmp_path, postgres_url)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert f'GRANT UPDATE ON head, leases TO "{role}";' in done.output
    config = ["db", "show", "--config"]
    shown = CliRunner().invoke(main, [*config, _config(tmp_path, postgres_url)])
    assert "evenhand could change the chain" in shown.output
    granted = postgres_url.replace("evenhand@", f"{role}@")
    shown = CliRunner().invoke(main, [*config, _config(tmp_path, granted)])
    assert f"{role} can append, not change" in shown.output
    with opened(postgres_url.replace("evenhand@", f"{role}@")) as ledger:
        assert ledger.keyring is KEYRING


def test_sqlite_has_no_roles(tmp_path):
    words = ["db", "grant", "somebody", "--config", _config(tmp_path, "ledger.sqlite")]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, "no roles" in done.output) == (2, True)
    assert "SQLite" in CliRunner().invoke(main, ["db", "show", *words[3:]]).output
