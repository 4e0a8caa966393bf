"""A product that was changed beside its ledger: nothing starts, decides, trains or writes words
under settings that mean something else than what is stored, and what may change says so.
"""

import contextlib
import dataclasses
import random

import pytest
from click.testing import CliRunner
from service.tests.bank import KEYRING, LOAN, TOML, Bank, application, ledger_with_settings
from service.tests.ledger.conftest import *  # noqa: F403 - both kinds of databases
from service.tests.ports import free_port
from service.tests.test_monitoring import forget, value

from evenhand.cli import main
from evenhand_service import LedgerKeys, Product, Settings, Trainer, create_app, server
from evenhand_service.ledger import Ledger
from evenhand_service.product_changes import GuaranteeChanged, differences, require_unchanged

TWO = Product("card", ("score", "income"), limit=0.1)
"""The bank's other product."""
CHANGES = {
    "features": {"features": ("income", "score")},
    "features: added": {"features": ("score", "income", "age")},
    "features: removed": {"features": ("score",)},
    "features: renamed": {"features": ("score", "salary")},
    "limit": {"limit": 0.3},
    "delta": {"delta": 0.01},
    "rates": {"rates": ("fnr",)},
    "groups": {"groups": ("a", "b")},
    "group_use": {"group_use": "decide", "groups": ("a", "b")},
    "class": {"hypotheses": "linear"},
    "score": {"hypotheses": "thresholds", "score": "income"},
    "maturity_days": {"maturity_days": 30},
    "fallback": {"fallback": "reject"},
    "price_false_accept": {"price_false_accept": 2.0},
    "price_false_reject": {"price_false_reject": 2.0},
    "prices_per_person": {"prices_per_person": True},
    "audit_budget": {"audit_budget": 20.0},
    "accept_at_most": {"accept_at_most": 0.5},
    "accept_at_least": {"accept_at_least": 0.1},
    "quota": {"quota": 50},
    "seed": {"seed": 8},
    "columns": {"columns": {"income": {"missing": True}}, "hypotheses": "tree"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_setting_that_gives_what_is_stored_its_meaning_is_named(bank, what):
    changed = dataclasses.replace(TWO, **CHANGES[what])
    with pytest.raises(GuaranteeChanged) as refused:
        Trainer(bank.ledger, changed, "another").catch_up()
    assert f"{what.split(':')[0]} was " in refused.value.sentence
    assert "epoch 1" in refused.value.sentence
    assert refused.value.hint
    with pytest.raises(GuaranteeChanged):
        require_unchanged(bank.ledger.policies("card"), changed, KEYRING.public_key)


def test_no_setting_of_a_product_is_forgotten():
    """Each one either is compared, or may change by its nature."""
    settled = {field.name for field in dataclasses.fields(Product)}
    compared = {{"class": "hypotheses"}.get(n.split(":")[0], n.split(":")[0]) for n in CHANGES}
    assert settled - compared == {"name", "quota_days", "quota_people", "model", "trusted"}
    with_quota = dataclasses.replace(TWO, quota=50)
    for name in ("quota_days", "quota_people"):
        other = dataclasses.replace(with_quota, **{name: 7.0})
        (change,) = differences(with_quota.guarantee, other.guarantee)
        assert change.startswith(f"{name} was ")


def test_what_is_written_otherwise_is_the_same():
    again = dataclasses.replace(TWO, maturity_days=5)
    assert differences(again.guarantee, dataclasses.replace(TWO, maturity_days=5.0).guarantee) == []


# a service in a folder


REORDERED = TOML.replace('features = ["score"]', 'features = ["score", "income"]')


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A ledger with an epoch of 120 people, and its settings."""
    monkeypatch.chdir(tmp_path)
    return ledger_with_settings(tmp_path)


def run(*words):
    return CliRunner().invoke(main, list(words))


SERVE = ("serve", "--config", "service.toml", "--port")
EDITS = [
    ('features = ["score"]', 'features = ["income"]', 'features was ["score"] and is ["income"]'),
    ('features = ["score"]', 'features = ["score", "age"]', "features was"),
    ("limit = 0.2", "limit = 0.3", "limit was 0.2 and is 0.3"),
]


@pytest.mark.parametrize(("before", "after", "told"), EDITS)
@pytest.mark.parametrize("words", ["check", "start", "train", "pack", "export"])
def test_a_changed_product_neither_passes_the_check_nor_starts(folder, before, after, told, words):
    config = folder / "service.toml"
    config.write_text(TOML.replace(before, after))
    given = {
        "check": (*SERVE, str(free_port()), "--check"),
        "start": (*SERVE, str(free_port()), "--seconds", "0.01"),
        "train": ("train", "--config", "service.toml", "--now"),
        "pack": ("audit", "pack", "--config", "service.toml", "--out", "pack"),
        "export": (
            "audit",
            "export",
            "--config",
            "service.toml",
            "--out",
            "log.csv",
        ),
    }[words]
    refused = run(*given)
    assert refused.exit_code == 2, refused.output
    assert told in refused.output
    assert "Hint: put the settings back" in refused.output
    assert not (folder / "pack").exists()
    assert not (folder / "log.csv").exists()
    config.write_text(TOML)
    assert run(*SERVE, str(free_port()), "--check").exit_code == 0


def test_who_verifies_is_told_and_the_ledger_is_as_sound_as_before(folder):
    words = ("audit", "verify", "--deep", "--config", "service.toml")
    said = run(*words)
    assert (said.exit_code, "The settings are not" in said.output) == (0, False)
    (folder / "service.toml").write_text(TOML.replace("limit = 0.2", "limit = 0.3"))
    said = run(*words)
    assert (said.exit_code, "0 problems" in said.output) == (0, True)
    assert "The settings are not those of the ledger" in said.output
    assert "limit was 0.2 and is 0.3" in said.output


def test_the_way_out_that_is_named_is_one(folder):
    """A changed product under a name of its own begins anew beside the old one."""
    config = folder / "service.toml"
    other = TOML[TOML.index("[[product]]") :].replace('"loan"', '"loan-2"').replace("0.2", "0.3")
    config.write_text(TOML + other)
    checked = run(*SERVE, str(free_port()), "--check")
    assert checked.exit_code == 0, checked.output
    assert "product loan: as it was published (epoch 1)" in checked.output
    assert "product loan-2: begins" in checked.output
    config.write_text(TOML.replace('"loan"', '"loan-2"').replace("0.2", "0.3"))
    trained = run("train", "--config", "service.toml", "--now")
    assert trained.exit_code == 0, trained.output
    with Ledger.open("ledger.sqlite", keyring=KEYRING, clock=lambda: 2e9) as ledger:
        assert ledger.counts("loan").decisions == 120
        assert [p.epoch for p in ledger.policies("loan-2") if p.in_lineage] == [1, 2]


def test_a_check_asks_the_windows_too_and_leaves_no_trace(folder):
    files = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert run(*SERVE, str(free_port()), "--check").exit_code == 0
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == files
    config = folder / "service.toml"
    config.write_text(TOML.replace("[service]", "[service]\nwindow_days = 7"))
    refused = run(*SERVE, str(free_port()), "--check")
    assert (refused.exit_code, "window_days = 30" in refused.output) == (2, True), refused.output


def test_a_check_asks_a_ledger_that_a_service_holds(tmp_path, monkeypatch):
    """As before an upgrade: what the running process has written last is seen."""
    monkeypatch.chdir(tmp_path)
    KEYRING.save(tmp_path / "keyring.json")
    made = Bank(tmp_path / "ledger.sqlite")
    try:
        for text, code in ((TOML, 0), (TOML.replace("0.2", "0.3"), 2)):
            (tmp_path / "service.toml").write_text(text)
            checked = run(*SERVE, str(free_port()), "--check")
            assert checked.exit_code == code, checked.output
    finally:
        made.close()


def test_a_database_is_asked_as_well(postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KEYRING.save(tmp_path / "keyring.json")
    Bank(postgres_url).close()
    for text, code in ((TOML, 0), (TOML.replace("0.2", "0.3"), 2)):
        (tmp_path / "service.toml").write_text(text.replace("ledger.sqlite", postgres_url))
        checked = run(*SERVE, str(free_port()), "--check")
        assert checked.exit_code == code, checked.output
    assert "limit was 0.2 and is 0.3" in checked.output


def test_a_process_that_cannot_start_does_not_end_as_if_all_were_well(tmp_path):
    """Another replica has begun with other settings after this one had looked."""
    made = Bank(tmp_path / "ledger.sqlite")
    made.close()
    changed = settings_of_products(dataclasses.replace(LOAN, limit=0.3))
    with (
        Ledger.open(tmp_path / "ledger.sqlite", keyring=KEYRING, clock=made.clock) as ledger,
        contextlib.closing(server.bound(changed)) as listening,
    ):
        running = server.make_server(create_app(ledger, changed, LedgerKeys(ledger)), changed)
        with pytest.raises(SystemExit) as ended:
            server.run(running, listening)
    assert ended.value.code == server.STARTUP_FAILED


def settings_of_products(*products):
    return Settings(products, port=0)


# a policy that another replica publishes


def published_elsewhere(bank, **changes):
    """The next policy of "loan", as a process with other settings would publish it; the trainer
    itself refuses, so it is talked into it here.
    """
    other = Trainer(bank.ledger, LOAN, "elsewhere")
    other.catch_up()
    other.product = dataclasses.replace(LOAN, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand_service.trainer.require_unchanged", lambda *_: None)
        other.close()


@pytest.mark.parametrize("change", [{"features": ("income",)}, {"limit": 0.1}])
def test_what_another_replica_publishes_is_compared_before_anybody_is_decided_by_it(bank, change):
    assert bank.post("/v1/decisions", application("before")).status_code == 200
    published_elsewhere(bank, **change)
    refused = bank.post("/v1/decisions", application("after"))
    assert (refused.status_code, refused.json()["type"]) == (
        503,
        "urn:evenhand:problem:product-changed",
    )
    assert f"{next(iter(change))} was " in refused.json()["detail"]
    assert refused.json()["hint"]
    batch = [application("b1"), application("b2", product="card", features=[1, 2])]
    one, two = bank.post("/v1/decisions/batch", {"decisions": batch}).json()["decisions"]
    assert one["type"] == "urn:evenhand:problem:product-changed"
    assert two["key"] == "b2"  # the other product goes on
    assert bank.get("/v1/decisions/before").status_code == 200
    assert bank.post("/v1/outcomes", {"key": "before", "label": 1}).status_code == 200
    ready = bank.client.get("/health/ready")
    forget(bank)
    ready = bank.client.get("/health/ready")
    assert (ready.status_code, ready.json()["product"]) == (503, "changed")
    assert value(bank, 'evenhand_product_changed{product="loan"}') == 1
    assert value(bank, 'evenhand_product_changed{product="card"}') == 0
    killed = bank.post("/v1/kill", {"product": "loan", "by": "op", "note": "n"})
    assert killed.status_code == 503
    assert bank.ledger.active("loan").mode == "live"


def test_two_first_starts_with_other_settings_do_not_both_decide(where):
    """Nobody had published yet when both were configured: the slower one refuses."""
    made = Bank(where, entropy=random.Random(7).randbytes)
    try:
        with pytest.raises(GuaranteeChanged):
            Trainer(made.ledger, dataclasses.replace(LOAN, limit=0.1), "late").begin()
        assert made.post("/v1/decisions", application()).status_code == 200
    finally:
        made.close()


def test_what_nobody_with_the_keyring_has_written_stops_no_product(bank):
    """Somebody changes the guarantee in the database: that policy decides nothing, and says nothing
    about the settings either.
    """
    newest = [one for one in bank.ledger.policies("loan") if one.in_lineage][-1]
    other = dataclasses.replace(LOAN, limit=0.3)
    forged = dataclasses.replace(newest, info=newest.info | {"guarantee": other.guarantee})
    require_unchanged([forged], LOAN, KEYRING.public_key)
    signed = dataclasses.replace(forged, signature=KEYRING.sign(forged.signed))
    with pytest.raises(GuaranteeChanged):  # the control
        require_unchanged([signed], LOAN, KEYRING.public_key)
