"""`evenhand serve`: what it refuses, what it says, and the demonstration; and `evenhand keys`, on
the ledger of the settings, with or without a service.
"""

import json
import signal
import socket
import subprocess
import sys
import threading
from urllib.request import urlopen

import psycopg
import pytest
from click.testing import CliRunner
from service.tests.bank import TOML, ledger_with_settings
from service.tests.ledger.conftest import *  # noqa: F403 - the fixtures of the ledger
from service.tests.ledger.helpers import KEYRING, opened, person, published
from service.tests.ports import free_port
from tests.without_clocks import PATIENCE, until

from evenhand.cli import main
from evenhand_service import LedgerKeys, demo, load_settings
from evenhand_service.commands import serve as commands
from evenhand_service.ledger import Keyring, Ledger, SystemClock, Tampered, Terms, verify
from evenhand_service.opening import open_ledger


def serve(*words):
    return CliRunner().invoke(main, ["serve", "--port", str(free_port()), *words])


@pytest.mark.parametrize("words", [(), ("--demo", "--config", __file__)])
def test_either_settings_or_the_demonstration(words):
    done = serve(*words)
    assert done.exit_code == 2
    assert "give either --config FILE or --demo" in done.output


def stop_when_people_have_applied(seconds, running):
    """In place of the option --seconds: a busy machine may need more of them before it starts."""
    ledger = running.config.app.service.ledger
    before = ledger.counts("loan").decisions

    def wait():
        until(lambda: ledger.counts("loan").decisions > before, "the first people")
        running.should_exit = True

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.thorough
def test_the_demonstration_is_quiet_and_leaves_a_folder_that_can_be_packed(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "_stop_after", stop_when_people_have_applied)
    for name in ("STATUS_SECONDS", "PATIENCE"):  # lines that a slow start would add
        monkeypatch.setattr(demo, name, PATIENCE)
    folder = tmp_path / "demo"
    words = ("--demo", "--folder", str(folder))
    done = serve(*words)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["Dashboard:", "API:", "Folder:", "Stop"]
    assert len(lines) == 7, done.output  # and at the end how many applied, and two commands
    applied = int(lines[4].split()[0].replace(",", ""))
    assert applied > 0
    again = serve(*words)  # it goes on
    assert again.exit_code == 0, again.output
    more = int(again.output.splitlines()[4].split()[0].replace(",", ""))
    for line in again.output.splitlines()[-2:]:
        shown = CliRunner().invoke(main, line.split()[1:])
        assert shown.exit_code == 0, shown.output
    decided = (folder / "pack" / "decisions.csv").read_text().count("\n") - 1
    assert decided == applied + more
    checked = CliRunner().invoke(main, ["audit", "check-pack", str(folder / "pack")])
    assert (checked.exit_code, "problems: 0" in checked.output) == (0, True), checked.output


@pytest.mark.thorough
@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_clean_and_sigterm_as_ever(tmp_path, signal_sent):
    """As a terminal does it: a process of its own gets the signal."""
    words = ["serve", "--demo", "--folder", str(tmp_path / "demo"), "--port", str(free_port())]
    with subprocess.Popen(
        [sys.executable, "-m", "evenhand", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        shown = []
        for line in running.stdout:
            shown.append(line)
            if line.startswith("Stop with"):
                break
        port = words[-1]
        until(lambda: answers(port), "the start of the service")
        running.send_signal(signal_sent)
        shown += running.stdout.readlines()
    text = "".join(shown)
    assert "Traceback" not in text
    assert "Aborted" not in text
    if signal_sent == signal.SIGINT:
        assert running.returncode == 0
        assert "simulated people applied" in text
    else:
        assert running.returncode == -signal.SIGTERM


def answers(port):
    try:
        with urlopen(f"http://127.0.0.1:{port}/health/live", timeout=PATIENCE) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_the_first_key_is_in_a_file_of_its_owner_and_no_busy_port_burns_it(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    words = ("--config", str(tmp_path / "service.toml"), "--seconds", "0.1", "--no-train")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        busy = serve(*words, "--port", str(other.getsockname()[1]))
    assert (busy.exit_code, "should be free to listen on" in busy.output) == (2, True), busy.output
    assert not (tmp_path / "first-key").exists()
    first, again = serve(*words), serve(*words)
    assert first.exit_code == again.exit_code == 0, first.output + again.output
    assert f"in the file {tmp_path / 'first-key'}" in first.output
    assert "eh_" not in busy.output + first.output + again.output
    assert "First key" not in again.output
    assert (tmp_path / "first-key").stat().st_mode & 0o777 == 0o600
    token = (tmp_path / "first-key").read_text().strip()
    assert token.startswith("eh_")
    assert token.encode() not in (tmp_path / "ledger.sqlite").read_bytes()
    with open_ledger(load_settings(tmp_path / "service.toml"), lambda: 1e10) as ledger:
        assert [key.name for key in LedgerKeys(ledger).all()] == ["first"]


def test_without_a_proxy_it_stays_on_this_machine(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    done = serve("--config", str(tmp_path / "service.toml"), "--host", "0.0.0.0")
    assert done.exit_code == 2
    assert "in the clear" in done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ledger_with_settings(tmp_path)


def test_train_from_the_command_line(folder):
    done = CliRunner().invoke(main, ["train", "--config", "service.toml", "--now"])
    assert done.exit_code == 0, done.output
    assert "epoch 2 published" in done.output
    assert "not due" in CliRunner().invoke(main, ["train", "--config", "service.toml"]).output
    (folder / "service.toml").write_text(TOML.replace("limit = 0.2", "limit = 0.3"))
    refused = CliRunner().invoke(main, ["train", "--config", "service.toml", "--now"])
    assert refused.exit_code == 2
    assert "limit was 0.2 and is 0.3" in refused.output


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


def test_a_database_that_refuses_is_told_without_its_password(postgres_url, tmp_path):
    opened(postgres_url).close()
    password = postgres_url.replace("evenhand@", "evenhand:s3cret@")
    nobody = password.replace("evenhand:", "nobody:")
    for ledger, told in (
        ("postgresql://evenhand:s3cret@127.0.0.1:1/evenhand", "is away or lets nobody in"),
        (nobody, "is away or lets nobody in"),
        (f"{password}_nowhere", "does not exist"),
        (password.replace("127.0.0.1:", "127.0.0.1:x"), "no number from 1 to 65535"),
        (password.replace("postgresql", "mysql"), "a URL of PostgreSQL"),
    ):
        config = _config(tmp_path, ledger)
        for words in (["db", "show"], ["db", "grant", "evenhand"], ["serve", "--check"]):
            done = CliRunner().invoke(main, [*words, "--config", config])
            assert done.exit_code == 2, done.output
            assert isinstance(done.exception, SystemExit)
            assert words[0] == "serve" or told in done.output
            assert "Hint: " in done.output
            assert "s3cret" not in done.output


def test_a_restore_shows_no_password(postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KEYRING.save(tmp_path / "keyring.json")
    opened(postgres_url).close()
    empty = f"{postgres_url}_restored"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {empty.rpartition('/')[2]}")
    words = ["audit", "backup", "--out", "copy", "--config", _config(tmp_path, postgres_url)]
    assert CliRunner().invoke(main, words).exit_code == 0
    config = _config(tmp_path, empty.replace("evenhand@", "evenhand:s3cret@"))
    words = ["audit", "restore", "copy", "--by", "op", "--config", config]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "Restored: postgresql://evenhand:***@" in done.output
    assert "s3cret" not in done.output


def test_a_root_is_rotated_by_one_command_and_no_restart(postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KEYRING.save(tmp_path / "keyring.json")
    KEYRING.save(tmp_path / "copy.json")
    words = ["audit", "rotate-root", "--by", "op", "--config", _config(tmp_path, postgres_url)]

    def replica(keyring="keyring.json"):
        return Ledger.open(postgres_url, keyring=Keyring.load(keyring), clock=SystemClock())

    with replica() as first:
        policy = published(first)
        answer = first.decide(person(1), Terms(policy, 0.5))
    with replica() as running, replica("copy.json") as elsewhere:
        taken = CliRunner().invoke(main, words)
        assert taken.exit_code == 0, taken.output
        assert "Root 1 is active; 1 keys wrapped anew." in taken.output
        assert running.find("k1").body == answer.body  # its key is wrapped by the new root
        running.operate("loan", "note", "it goes on")
        assert running.keyring.active == 1
        with pytest.raises(Tampered) as stopped:
            elsewhere.operate("loan", "note", "its file is another one")
        assert "a newer root was taken up that this process does not hold" in str(stopped.value)
    with replica() as again:
        assert verify(again, deep=True).ok


def test_a_root_can_be_added_first_where_keyrings_are_copies(folder):
    words = ["audit", "rotate-root", "--by", "op", "--config", "service.toml"]
    added = CliRunner().invoke(main, [*words, "--only-add"])
    assert "give it to every replica, then rotate" in added.output
    assert (Keyring.load("keyring.json").roots, Keyring.load("keyring.json").active) == (2, 0)
    assert "Root 1 is active" in CliRunner().invoke(main, words).output
    assert (Keyring.load("keyring.json").roots, Keyring.load("keyring.json").active) == (2, 1)
    assert "Root 2 is active" in CliRunner().invoke(main, words).output


# evenhand keys


@pytest.fixture
def config(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    return tmp_path / "service.toml"


def keys(config, *words):
    return CliRunner().invoke(main, ["keys", words[0], "--config", str(config), *words[1:]])


OPERATOR = ("create", "--scope", "admin", "--name", "operator")


def test_create_list_and_revoke(config):
    operator = keys(config, *OPERATOR)
    token = operator.output.strip()
    assert (operator.exit_code, token[:3]) == (0, "eh_")
    made = keys(config, "create", "--scope", "decide", "--scope", "audit", "--name", "web shop")
    shop = made.output.strip()
    listed = keys(config, "list").output
    assert token not in listed
    assert shop not in listed
    line = next(line for line in listed.splitlines() if "web shop" in line)
    _, state, _, scopes, *_ = line.split()
    assert (state, scopes) == ("valid", "audit,decide")
    assert "is revoked" in keys(config, "revoke", line.split()[0], "--by", "Ada").output
    with open_ledger(load_settings(config), lambda: 1e9) as ledger:
        assert LedgerKeys(ledger).find(shop) is None
        assert LedgerKeys(ledger).find(token) is not None
        events = [(event.action, event.by) for event in ledger.key_events()]
    assert events[-1] == ("key_revoked", "Ada")
    assert [action for action, _ in events] == ["key_created", "key_created", "key_revoked"]


def test_the_list_as_one_document(config):
    token = keys(config, *OPERATOR).output.strip()
    made = keys(config, "create", "--scope", "observe", "--scope", "decide", "--name", "web shop")
    told = json.loads(keys(config, "list", "--json").stdout)["keys"]
    shop = next(key for key in told if key["name"] == "web shop")
    assert (shop["state"], shop["scopes"]) == ("valid", ["decide", "observe"])
    keys(config, "revoke", shop["id"])
    listed = keys(config, "list", "--json")
    states = {key["id"]: key["state"] for key in json.loads(listed.stdout)["keys"]}
    assert states[shop["id"]] == "revoked"
    assert sorted(states.values()) == ["revoked", "valid"]
    for secret in (token, made.output.strip()):
        assert secret not in listed.output


def test_what_cannot_be_is_refused_with_a_way_out(config):
    unknown = keys(config, "revoke", "0" * 12)
    assert (unknown.exit_code, "evenhand keys list" in unknown.output) == (2, True)
    with open_ledger(load_settings(config), lambda: 1e9):
        busy = keys(config, "list")
    assert "POST /v1/keys" in busy.output


def test_a_database_that_is_away_loses_no_key(config):
    """A key is made when the database can be written, and not before."""
    away = TOML.replace("ledger.sqlite", "postgresql://evenhand@127.0.0.1:1/none")
    config.write_text(away)
    refused = keys(config, *OPERATOR)
    assert (refused.exit_code, "cannot be opened" in refused.output) == (2, True)
    config.write_text(TOML)
    assert "eh_" in keys(config, *OPERATOR).output


COMMANDS = (
    ("keys", *OPERATOR),
    ("keys", "list"),
    ("db", "show"),
    ("audit", "verify"),
    ("train",),
    ("serve", "--check"),
)
LOADED = """import sys
from click.testing import CliRunner
from evenhand.cli import main
done = CliRunner().invoke(main, sys.argv[1:])
loaded = [name for name in ("sklearn", "pandas", "fastapi", "uvicorn") if name in sys.modules]
print(done.exit_code, len(sys.modules), *loaded)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_loads_little(service_toml, words):
    """Imports are nearly all that a command costs; scikit-learn alone took seconds."""
    given = [sys.executable, "-c", LOADED, *words, "--config", service_toml.name]
    done = subprocess.run(given, cwd=service_toml.parent, capture_output=True, text=True)
    code, modules, *heavy = done.stdout.split()
    assert code == "0", done.stderr
    assert int(modules) < 1000
    assert heavy == (["fastapi", "uvicorn"] if words[0] == "serve" else [])
