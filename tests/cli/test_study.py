"""`evenhand study`, from a CSV to a report."""

import sys

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

OWN = ("--label", "repaid", "--good", "yes", "--group", "group")
QUICK = (
    "--learner",
    "accept-all",
    "--learner",
    "fair-on-gathered",
    "--rounds",
    "400",
    "--seeds",
    "1",
    "--jobs",
    "1",
)


def test_from_a_csv_to_a_report_with_one_command(run, lending, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["evenhand", "study", str(lending), *OWN])
    done = run("study", lending, *OWN, *QUICK, "--out", "s")
    assert done.exit_code == 0
    assert "fair-on-gathered" in done.stdout
    page = (tmp_path / "s" / "report.html").read_text()
    assert "763 people" in page
    assert "--label repaid --good yes --group group" in page
    again = run("study", lending, *OWN, *QUICK, "--out", "s")
    assert again.stdout == done.stdout


def test_a_description_does_as_well(run, lending, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'path = "lending.csv"\nlabel = "repaid"\ngood = "yes"\ngroup = "group"\n'
        'caveat = "Mine alone."\n'
    )
    done = run("study", "mine.toml", *QUICK, "--out", "s")
    assert done.exit_code == 0
    assert "Mine alone." in (tmp_path / "s" / "report.html").read_text()
    assert "Caveat: Mine alone." in run("data", "show", "mine.toml").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lending.csv",), "nothing says which column of lending.csv"),
        (("nothing.csv", *OWN), "neither a table nor a file 'nothing.csv'"),
        (("lending", "--learner", "oracle"), "no learner 'oracle'"),
        (("lending", "--limit", "2"), "did you mean 0.02?"),
    ],
)
def test_refusals(run, lending, words, message):
    refused = run("study", *words, "--out", "s")
    assert refused.exit_code == 2
    assert message in refused.stderr


@pytest.fixture
def newcomer(write):
    """A table as it comes: a column of text, missing values, a column that names people, people
    without an outcome.
    """
    lines = ["customer,income,purpose,sex,repaid"]
    for i in range(400):
        income, purpose = (
            ("" if i % 40 == 0 else 20 + i * 37 % 50),
            ("car", "house", "study")[i % 3],
        )
        repaid = "" if i % 25 == 7 else ("no", "yes")[i * 37 % 50 > 20]
        lines.append(f"{i},{income},{purpose},{'fm'[i // 2 % 2]},{repaid}")
    return write("\n".join(lines) + "\n", "loans.csv")


def test_a_newcomer_is_led_from_a_raw_table_to_a_study(run, newcomer):
    """Each refusal names the option that settles it; with all of them the study runs and says what
    became of the rows.
    """
    words = [
        "study",
        "loans.csv",
        "--label",
        "repaid",
        "--good",
        "yes",
        "--group",
        "sex",
        *QUICK,
        "--out",
        "s",
    ]
    for option in ("--drop-unlabelled", "--drop-missing", "--encode"):
        refused = run(*words)
        assert refused.exit_code == 2
        assert option in refused.stderr.split("Hint:")[1], refused.stderr
        words = [*words, option]
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    for note in (
        "16 people without a label",
        "rows with a missing value",
        "'purpose' became 3 columns",
        "'customer' is another",
    ):
        assert note in done.stderr


@pytest.mark.parametrize(
    ("package", "extra"), [("matplotlib", "plots"), ("jinja2", "plots"), ("pyarrow", "study")]
)
def test_a_missing_package_is_noticed_before_anything_runs(
    run, lending, monkeypatch, tmp_path, package, extra
):
    monkeypatch.setitem(sys.modules, package, None)
    refused = run("study", "lending", *QUICK, "--out", "s")
    assert refused.exit_code == 2
    assert f"pip install -e '.[{extra}]'" in refused.stderr
    assert not (tmp_path / "s").exists()
