import json
import re
import shlex
import sys
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from markupsafe import escape

from evenhand.cli import main
from evenhand.simulation import Comparison
from evenhand.simulation.named import (
    LEARNERS,
    POPULATIONS,
)

SMALL = ("--limit", 0.3, "--rounds", 6000, "--seeds", 2, "--jobs", 1)
THREE = (
    "--learner",
    "two-phase",
    "--learner",
    "fair-on-gathered",
    "--learner",
    "explore-then-commit-same",
)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "deep" / "out"
    words = [str(word) for word in ("compare", *THREE, *SMALL, "--out", folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evenhand", *words])
        result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result, folder


def test_table_and_files(compared):
    result, folder = compared
    assert sorted(p.name for p in folder.iterdir()) == [
        "gaps.svg",
        "regret.svg",
        "report.html",
        "results.json",
    ]
    assert result.stdout.rstrip().endswith(f"Report: {folder / 'report.html'}")
    for name in THREE[1::2]:
        row = next(line for line in result.stdout.splitlines() if line.startswith(f"{name} "))
        assert re.search(r"-?[\d,]+ ± [\d,]+", row)
        assert re.search(r"\d/2", row)
        assert ("yes" if name != "fair-on-gathered" else "no") in row.split()
    assert "with probability 0.95" in " ".join(result.stdout.split())


def test_the_report_is_whole_and_has_every_row(compared):
    _, folder = compared
    text = (folder / "report.html").read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//""", text)
    assert not re.search(r"url\(\s*[\"']?(?!#)", text)
    for name in THREE[1::2]:
        assert f"</span>{name}</td>" in text
        assert escape(LEARNERS[name].text) in text


def test_the_results_come_back(compared):
    _, folder = compared
    document = json.loads((folder / "results.json").read_text())
    again = Comparison.from_json(document["comparison"])
    assert again.to_json() == document["comparison"]
    assert [row.runs for row in again.summaries] == [2, 2, 2]


def test_the_command_in_the_report_repeats_it(compared, run, tmp_path):
    _, folder = compared
    first = json.loads((folder / "results.json").read_text())
    words = shlex.split(first["command"])
    assert words[:2] == ["evenhand", "compare"]
    assert run(*words[1:], "--out", "again").exit_code == 0
    second = json.loads((tmp_path / "again" / "results.json").read_text())
    regret = [
        [r["regret"] for one in d["comparison"]["learners"] for r in one["runs"]]
        for d in (first, second)
    ]
    assert regret[0] == regret[1]


def test_the_first_seed(run, tmp_path):
    words = "compare --learner accept-all --rounds 50 --seeds 2 --first-seed 7 --jobs 1 --out o"
    assert run(*words.split()).exit_code == 0
    document = json.loads((tmp_path / "o" / "results.json").read_text())
    assert document["comparison"]["seeds"] == [7, 8]


def test_options_of_a_learner_make_it_another_one(run, tmp_path):
    result = run(
        "compare",
        "--learner",
        "uniform",
        "--learner",
        "explore-then-commit:exploration-rounds=4000",
        *SMALL,
        "--out",
        "o",
    )
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "o" / "results.json").read_text())
    told = document["comparison"]["learners"][1]
    assert told["name"] == "explore-then-commit:exploration-rounds=4000"
    assert told["params"]["exploration_rounds"] == 4000


REFUSED = {
    "unknown environment": (
        ["--environment", "lendign"],
        ["there is no environment 'lendign'", *POPULATIONS],
    ),
    "unknown learner": (["--learner", "two-fase"], ["there is no learner 'two-fase'", *LEARNERS]),
    "option typo": (
        ["--learner", "two-phase:estimater=two-sided"],
        ["no option 'estimater'", "estimator, schedule, bound"],
    ),
    "option without options": (
        ["--learner", "accept-all:x=1"],
        ["no option 'x'", "it takes no options"],
    ),
    "environment option typo": (
        ["--environment", "random", "--env-option", "sed=1"],
        ["no option 'sed'", "seed, contexts"],
    ),
    "no value": (["--learner", "two-phase:estimator"], ["has no value", "estimator=VALUE"]),
    "bad choice": (
        ["--learner", "two-phase:estimator=three-sided"],
        ["'three-sided'", "one-sided or two-sided"],
    ),
    "bad number": (
        ["--environment", "random", "--env-option", "seed=x"],
        ["'x'", "a whole number"],
    ),
    "bad truth": (
        ["--learner", "explore-then-commit:same_exploration=maybe"],
        ["'maybe'", "yes or no"],
    ),
    "twice in one": (["--learner", "exp4:grid=2,grid=3"], ["'grid'", "given twice"]),
    "same learner twice": (
        ["--learner", "uniform", "--learner", "uniform"],
        ["'uniform' is given twice"],
    ),
    "rounds": (["--rounds", "0"], ["rounds is 0"]),
    "negative rounds": (["--rounds", "-5"], ["rounds is -5"]),
    "exploration too long": (
        ["--learner", "two-phase:exploration_rounds=6000", "--rounds", "6000"],
        ["does not fit into a horizon"],
    ),
    "exponent": (["--learner", "two-phase:tradeoff_exponent=0.6"], ["0.6"]),
    "delta": (["--delta", "0"], ["0"]),
    "comparator above the promise": (
        ["--comparator-gap", "0.2"],
        ["comparator_gap is 0.2", "Hint"],
    ),
    "lower bound": (["--environment", "lower-bound", "--env-option", "gap=0.2"], ["1/16"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_a_way_out(run, name):
    words, said = REFUSED[name]
    result = run("compare", "--jobs", 1, *words)
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert all(part in told for part in said), told
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [["--seeds", "0"], ["--jobs", "0"], ["--first-seed", "-1"], ["--rate", "kindness"]]
)
def test_click_refuses(run, words):
    assert run("compare", *words).exit_code == 2


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_without_matplotlib_the_table_is_printed_and_the_numbers_are_kept(
    run, monkeypatch, tmp_path, package
):
    monkeypatch.setitem(sys.modules, package, None)
    result = run("compare", "--learner", "accept-all", *SMALL)
    assert result.exit_code == 0, result.output
    assert "accept-all" in result.stdout
    assert "No report and figures" in result.stdout
    assert "pip install -e '.[plots]'" in " ".join(result.stdout.split())
    written = [path.name for path in (tmp_path / "evenhand-compare").iterdir()]
    assert written == ["results.json"]
    kept = json.loads((tmp_path / "evenhand-compare" / "results.json").read_text())
    assert Comparison.from_json(kept["comparison"]).summaries[0].name == "accept-all"


OWN = ("--data", "loans.csv", "--label", "repaid", "--good", "yes", "--group", "sex")


def test_a_table_of_ones_own_is_a_population(run, tmp_path):
    """Its own rates are the truth: what accepting all applicants costs is the share of bad
    outcomes.
    """
    rows = [f"{i * 37 % 50},{'fm'[i % 2]},{('no', 'yes')[i % 5 > 1]}" for i in range(200)]
    (tmp_path / "loans.csv").write_text("income,sex,repaid\n" + "\n".join(rows) + "\n")
    few = ("--rounds", 500, "--seeds", 1, "--jobs", 1)
    result = run("compare", *OWN, "--learner", "accept-all", "--learner", "uniform", *few)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("loans: 500 rounds, 1 runs each")
    kept = json.loads((tmp_path / "evenhand-compare" / "results.json").read_text())
    comparison = Comparison.from_json(kept["comparison"])
    assert comparison.environment["rows"] == 200
    assert comparison.summaries[0].cost == pytest.approx(0.4)
    page = (tmp_path / "evenhand-compare" / "report.html").read_text()
    assert "the table loans: 200 people, drawn with replacement" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--label", "repaid"), "--label is about the columns of a table"),
        ((*OWN, "--environment", "random"), "are two populations"),
        (("--data", "nothing.csv"), "neither a table nor a file 'nothing.csv'"),
    ],
)
def test_a_population_is_named_once(run, words, message):
    result = run("compare", *words, *SMALL)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_file_in_the_way(run, tmp_path):
    (tmp_path / "f").write_text("")
    assert run("compare", "--out", "f").exit_code == 2


def test_the_help_lists_every_name(run):
    text = run("compare", "--help").stdout
    for name, entry in {**POPULATIONS, **LEARNERS}.items():
        assert name in text
        assert all(option in text for option in entry.options), name
