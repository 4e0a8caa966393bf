"""Settings: what is refused, and the fingerprints that are stored."""

import runpy
from dataclasses import fields, replace
from pathlib import Path

import pytest

from evenhand.errors import InvalidInput
from evenhand_service import Product, Settings, load_settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[service]\nnonsense = 1\n", "'nonsense'"),
        ("nope", "no TOML"),
        ("[service]\n", "product"),
        ("[other]\n", "part"),
        ('[[product]]\nname="p"\nfeatures=["a"]\nlimit=7\n', "limit is 7"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, text, message):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        load_settings(path)


LOAN = {"name": "loan", "features": ("score",)}


def test_fingerprints_are_those_of_the_promise_however_it_is_written():
    """As stored in published policies."""
    whole = Product(**LOAN, limit=0.2, maturity_days=5, hypotheses="thresholds", seed=3)
    assert replace(whole, maturity_days=5.0).digest == whole.digest
    assert replace(whole, maturity_days=6).digest != whole.digest
    assert Product(**LOAN).digest != whole.digest
    assert replace(whole, groups=["a", "b"]).digest == replace(whole, groups=("a", "b")).digest


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"limit": "low"}, "limit .* is 'low'.* number"),
        ({"fallback": "ask"}, "fallback .* is 'ask'.*'accept' or 'reject'"),
        ({"features": ()}, "one feature"),
        ({"features": "score"}, "features of .* is 'score'"),
        ({"rates": ("speed",)}, "fpr"),
        ({"group_use": "decide"}, "listed"),
        ({"hypotheses": "forest"}, "class is 'forest'"),
        ({"hypotheses": "thresholds", "score": "income"}, "score is 'income'"),
        ({"nonsense": 1}, "'nonsense'.*accept_at_least"),
        ({"name": None}, "name of .* is None"),
    ],
)
def test_products_that_cannot_be_are_refused(changed, message):
    with pytest.raises(InvalidInput, match=message):
        Product(**{**LOAN, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"port": 70_000}, "port .* is 70000.*65535"),
        ({"port": "80"}, "port of .* is '80'"),
        ({"rate": 0}, "rate .* is 0.* 0"),
        ({"behind_proxy": "yes"}, "behind_proxy of .* is 'yes'"),
        ({"products": (Product(**LOAN), Product(**LOAN))}, "twice"),
    ],
)
def test_limits_that_cannot_be_are_refused(changed, message):
    with pytest.raises(InvalidInput, match=message):
        Settings(**{"products": (Product(**LOAN),), **changed})


def test_what_is_missing_is_named():
    with pytest.raises(InvalidInput, match="'features'"):
        Product("loan")


def test_files_lie_beside_the_settings_and_a_database_has_a_url(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(
        '[service]\nledger = "postgresql://db/x"\nallowed_hosts = ["a.org"]\n'
        '[[product]]\nname = "p"\nfeatures = ["a", "b"]\n'
        'class = "linear"\nlimit = 1\n'
    )
    settings = load_settings(path)
    assert settings.ledger == "postgresql://db/x"
    assert settings.keyring == str(tmp_path / "keyring.json")
    assert settings.allowed_hosts == ("a.org",)
    (product,) = settings.products
    assert (product.hypotheses, product.features, product.limit) == ("linear", ("a", "b"), 1)


@pytest.mark.parametrize(
    ("name", "value", "law"),
    [
        ("rate", float("inf"), "less than"),
        ("rate", "fast", "valid number"),
        ("burst", 0.5, "at least 1"),
        ("window_days", 1e-9, "at least 0.001"),
        ("host", "", "address"),
        ("allowed_hosts", "bank.example", "list of texts"),
        ("allowed_hosts", ["https://bank.example"], "without scheme"),
        ("max_body", 7, "at least 1024"),
        ("train_every", 1e9, "one day"),
        ("ledger", "mysql://db/x", "URL of PostgreSQL"),
        ("keyring", " ", "no empty text"),
    ],
)
def test_an_impossible_setting_is_refused_by_name_value_law_and_way_out(name, value, law):
    with pytest.raises(InvalidInput) as refused:
        Settings((Product(**LOAN),), **{name: value})
    message = str(refused.value)
    assert f"{name} of [service] is" in message
    assert law in message
    assert "Hint: " in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", ""), ("name", "a\nb"), ("name", "x" * 201), ("features", ["", "a"])],
)
def test_names_are_names(name, value):
    with pytest.raises(InvalidInput, match=f"{name}.*printable"):
        Product(**{**LOAN, name: value})


@pytest.mark.parametrize(
    "value",
    [
        "mysql://ann:s3cret@host/db",
        "postgresql://ann:s3cret@host:port/db",
        "postgresql://ann:s3cret",
        "postgresql://ann:s3cret@host:99999/db?password=s3cret",
        ["postgresql://ann:s3cret@host/db"],
        {"url": "postgresql://ann:s3cret@host/db"},
    ],
)
def test_no_refusal_repeats_a_password(value):
    with pytest.raises(InvalidInput) as refused:
        Settings((Product(**LOAN),), ledger=value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("port", ["abc", "0", "65536"])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(InvalidInput, match="65535"):
        Settings((Product(**LOAN),), ledger=f"postgresql://ann@host:{port}/db")


def test_the_page_of_the_settings_is_written_from_them():
    page = runpy.run_path(str(ROOT / "scripts" / "write_settings.py"))
    written = page["page"]()
    kept = (ROOT / "service" / "docs" / "settings.md").read_text(encoding="utf-8")
    assert kept == written, "run scripts/write_settings.py"
    assert sum(map(len, page["ESSENTIAL"].values())) <= 15
    for record in (Product, Settings):
        assert set(page["described"](record)) == {field.name for field in fields(record)}
