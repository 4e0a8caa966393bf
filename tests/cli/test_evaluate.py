import csv
import json

import numpy as np
import pytest

from evenhand.cli.evaluate import demo_log
from evenhand.evaluation import Candidate, DecisionLog, evaluate, read_log, write_log
from evenhand.hypotheses import policy_from_json

OLD = "accept,label,group,x\n1,1,a,0\n0,,b,1\n"


def told(result) -> str:
    return " ".join(result.stdout.split())


def test_a_solved_policy_is_judged_on_other_people(run, lending, tmp_path):
    """In sample its gap is .05; on 20,000 others it is larger, and the command does not say
    otherwise.
    """
    assert (
        run(
            "solve",
            lending,
            "--label",
            "repaid",
            "--good",
            "yes",
            "--group",
            "group",
            "--limit",
            "0.05",
            "--save",
            "p.json",
        ).exit_code
        == 0
    )
    result = run(
        "evaluate",
        "demo",
        "--policy",
        "p.json",
        "--limit",
        "0.05",
        "--out",
        "gap.svg",
        "--out",
        "e.json",
    )
    assert result.exit_code == 0
    out = told(result)
    document = json.loads((tmp_path / "e.json").read_text())
    assert document["numbers"]["sentence"] in out
    assert document["numbers"]["verdict"] == document["verdict"]["status"] == "not shown"
    for words in (
        "What p.json would have done",
        "Cost per person",
        "gap FPR b minus a",
        "Assumptions",
        "without looking at these rows",
    ):
        assert words in out
    assert out.endswith("Saved: gap.svg Saved: e.json")
    course = document["numbers"]["course"]
    assert len(course["rows"]) == len(course["gaps"]) > 10
    assert (tmp_path / "gap.svg").read_text().startswith("<?xml")


def test_prices_rates_and_the_verdicts(run):
    dear = told(
        run(
            "evaluate",
            "demo",
            "--policy",
            "accept-all",
            "--price-false-accept",
            3,
            "--rate",
            "fpr",
            "--rate",
            "selection",
            "--limit",
            0,
        )
    )
    assert "Certified with probability 0.95 under the assumptions below" in dear
    assert "gap in FPR and SR" in dear
    assert "Cost per person" in dear
    assert "guarantee" not in dear
    assert "unbiased" not in dear


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_a_file_gives_the_answer_of_its_log(run, tmp_path, name):
    asked = ("--policy", "accept-all", "--out")
    assert run("evaluate", "demo", "--skip-first", 18_000, *asked, "a.json").exit_code == 0
    write_log(demo_log().without_first(18_000), tmp_path / name)
    assert run("evaluate", name, *asked, "b.json").exit_code == 0
    a, b = (json.loads((tmp_path / f"{one}.json").read_text()) for one in "ab")
    assert a["numbers"] == b["numbers"]


def test_the_demo_s_log_is_what_it_says():
    log = demo_log(5000)
    assert log.acceptance.min() >= 0.1
    assert abs(log.accept.mean() - log.acceptance.mean()) < 0.03
    assert log.groups == ("a", "b")
    assert np.array_equal(log.acceptance, demo_log(5000).acceptance)


def refused(result, *words):
    assert result.exit_code == 2
    assert result.stdout == ""
    text = " ".join(result.stderr.split())
    for word in words:
        assert word in text
    assert "Traceback" not in text


def test_historic_decisions_are_refused_with_the_reason_and_the_way_out(run, write):
    path = write(OLD, "old.csv")
    refused(
        run("evaluate", path, "--policy", "accept-all"),
        "holds no propensities",
        "nothing can be certified",
        "may have seen what the log does not hold",
        "Hint: record with every decision the probability",
        "evenhand plan",
    )


def test_bad_input_is_named_and_nothing_is_written(run, write, tmp_path):
    path = write("accept,acceptance,label,group,x\n1,0.5,1,a,0\n0,0,,b,1\n1,0.4,0,b,1\n", "log.csv")
    refused(
        run("evaluate", path, "--policy", "accept-all", "--out", "e.json"),
        "row 2 had the acceptance probability 0",
        "explore",
    )
    assert not (tmp_path / "e.json").exists()
    refused(run("evaluate", path), "Missing option '--policy'")
    refused(
        run("evaluate", "demo", "--policy", "missing.json"),
        "neither accept-all nor reject-all nor a file",
    )
    refused(run("evaluate", "missing.csv", "--policy", "accept-all"), "missing.csv cannot be read")
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--column", "group"), "is not ROLE=COL"
    )
    refused(run("evaluate", "demo", "--policy", "accept-all", "--limit", -1), "limit is -1.0")
    refused(run("evaluate", "demo", "--policy", "accept-all", "--delta", 0), "delta is 0")
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--skip-first", 20_000),
        "at least one row must remain",
    )
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--groups", "a,z"),
        "group 'z' does not occur",
    )
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--price-false-accept", -1),
        "prices are finite numbers",
    )
    write("accept,acceptance,label,x\n1,1.5,1,0\n", "over.csv")
    refused(
        run("evaluate", "over.csv", "--policy", "accept-all"),
        "row 1 has the acceptance probability 1.5",
    )


# policies of raw tables: texts, dates of birth that are missing, names of their own


HOMES = ("rent", "own", "with parents", "")
RAW = ("id", "home", "joined", "income", "sex", "repaid")


def raw_people(seed, people):
    """Rows as a lender has them: texts, dates, and holes in one column of each kind."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(people):
        strength = rng.normal()
        home = HOMES[rng.choice(4, p=[0.45, 0.35, 0.15, 0.05])]
        income = "" if rng.random() < 0.1 else f"{30 + 9 * strength:.1f}"
        chance = 1 / (1 + np.exp(-(0.2 + 0.9 * strength + 0.9 * (home == "own"))))
        joined = f"20{rng.integers(10, 24)}-0{rng.integers(1, 10)}-11"
        sex = "f" if rng.random() < 0.4 else "m"
        repaid = "yes" if rng.random() < chance else "no"
        rows.append([f"P{number}", home, joined, income, sex, repaid])
    return rows


def write_rows(path, head, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def raw_log(seed, people):
    """Such people, accepted by a coin that leans on their home; the outcomes of the accepted."""
    rng = np.random.default_rng([seed, 1])
    rows = []
    for row in raw_people(seed, people):
        chance = 0.3 + 0.4 * (row[1] == "own")
        accept = rng.random() < chance
        rows.append([*row[:5], row[5] if accept else "", chance, int(accept)])
    return [*RAW, "acceptance", "accept"], rows


def solved(run, tmp_path, *options):
    write_rows(tmp_path / "train.csv", RAW, raw_people(1, 500))
    columns = ("--label", "repaid", "--good", "yes", "--group", "sex", "--id", "id", "--encode")
    made = run("solve", "train.csv", *columns, *options, "--limit", 0.1, "--save", "policy.json")
    assert made.exit_code == 0, made.output
    return json.loads((tmp_path / "policy.json").read_text())


def encoded_by_hand(document, rows):
    """The numbers of a policy file, one cell after the other, without its reader."""
    places = dict(zip(RAW, range(6), strict=True))

    def cell(row, name):
        column, _, value = name.partition("=")
        if value:
            return float((row[places[column]] or "missing") == value)
        if name.endswith(" missing"):
            return float(row[places[name.removesuffix(" missing")]] == "")
        given = row[places[name]]
        if name == "joined":
            return (np.datetime64(given) - np.datetime64("1970-01-01")).astype(float)
        return float(given) if given else document["filled"][name]

    return np.array([[cell(row, name) for name in document["columns"]] for row in rows])


def test_a_policy_of_a_raw_table_is_evaluated_as_on_encoded_arrays(run, tmp_path):
    document = solved(run, tmp_path, "--fill-missing", "all", "--class", "linear")
    assert {"home=own", "joined", "income", "income missing"} <= set(document["columns"])
    head, rows = raw_log(2, 1500)
    write_rows(tmp_path / "log.csv", head, rows)
    answer = run("evaluate", "log.csv", "--policy", "policy.json", "--out", "e.json")
    assert answer.exit_code == 0, answer.output
    found = json.loads((tmp_path / "e.json").read_text())["numbers"]

    accept = np.array([row[7] == 1 for row in rows])
    label = np.array([{"yes": 1, "no": -1, "": 0}[row[5]] for row in rows])
    chance = np.array([row[6] for row in rows])
    sex = np.array([row[4] for row in rows])
    features = encoded_by_hand(document, rows)
    policy = policy_from_json(document["policy"])
    log = DecisionLog.of(
        features, accept, chance, label, group=sex.tolist(), names=document["columns"]
    )
    figures = json.loads(json.dumps(evaluate(log, policy).to_json()))
    for part in ("loss", "rates", "gaps", "course", "support", "people", "accepted"):
        assert found[part] == figures[part], part

    # And by inverse propensities alone, which know neither a regression nor a bet.
    pi = policy.acceptance(features)
    weight = accept / chance
    wrong = pi * (label == -1) + (1 - pi) * (label == 1)
    assert found["loss"]["value"] == pytest.approx(np.mean(weight * wrong), abs=0.03)
    bad = weight * (label == -1)
    rate = {one: np.sum((bad * pi)[sex == one]) / np.sum(bad[sex == one]) for one in "fm"}
    assert found["gaps"][0]["estimate"]["value"] == pytest.approx(rate["m"] - rate["f"], abs=0.04)
    for one in found["rates"]:
        assert one["estimate"]["value"] == pytest.approx(rate[one["group"]], abs=0.04)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_constant_needs_no_column_of_features(run, tmp_path, kind):
    head, rows = raw_log(3, 400)
    tables = {"texts": ["home", "income", *head[4:]], "bare": head[4:]}
    figures = {}
    for name, columns in tables.items():
        cells = [[row[head.index(one)] for one in columns] for row in rows]
        path = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            write_rows(path, columns, cells)
        else:
            lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in cells]
            path.write_text("\n".join(lines))
        named = ("--column", "label=repaid", "--good", "yes", "--column", "group=sex")
        answer = run("evaluate", path, "--policy", "accept-all", *named, "--out", "e.json")
        assert answer.exit_code == 0, answer.output
        figures[name] = json.loads((tmp_path / "e.json").read_text())["numbers"]
    said = [one for one in figures["texts"]["warnings"] if "not all numbers" in one]
    assert [one.split(":")[0] for one in said] == ["home, income"]
    assert figures["texts"]["loss"] == figures["bare"]["loss"]
    assert figures["texts"]["gaps"] == figures["bare"]["gaps"]
    weights = [row[7] / row[6] * (row[5] == "no") for row in rows]
    assert figures["bare"]["loss"]["value"] == pytest.approx(np.mean(weights), abs=0.03)


def test_what_does_not_fit_a_policy_is_refused_as_test_refuses_it(run, tmp_path):
    solved(run, tmp_path, "--drop-missing", "--class", "stumps")
    head, rows = raw_log(4, 300)
    write_rows(tmp_path / "log.csv", head, rows)
    ask = ("evaluate", "log.csv", "--policy", "policy.json")
    refused(run(*ask), "values are missing", "drop")
    kept = [row for row in rows if row[1] and row[3]]
    answer = run(*ask, "--drop-missing", "--out", "e.json")
    assert answer.exit_code == 0, answer.output
    found = json.loads((tmp_path / "e.json").read_text())["numbers"]
    assert found["people"] == len(kept)
    assert any(f"{len(rows) - len(kept)} rows with a missing value" in w for w in found["warnings"])

    write_rows(tmp_path / "log.csv", head, [["P", "tent", *kept[0][2:]], *kept])
    refused(run(*ask), "'tent'", "never seen")
    assert run(*ask, "--unseen", "ignore").exit_code == 0
    write_rows(tmp_path / "log.csv", [head[0], "house", *head[2:]], kept)
    refused(run(*ask), "no column 'home'", "the policy was made with")


def test_a_log_that_holds_the_numbers_of_a_policy_is_read_as_before(run, tmp_path):
    document = solved(run, tmp_path, "--fill-missing", "all", "--class", "stumps")
    head, rows = raw_log(5, 300)
    write_rows(tmp_path / "log.csv", head, rows)
    numbers = encoded_by_hand(document, rows)
    made = [*document["columns"], *head[4:]]
    write_rows(
        tmp_path / "numbers.csv",
        made,
        [[*number, *row[4:]] for number, row in zip(numbers.tolist(), rows, strict=True)],
    )
    answers = []
    for log in ("log.csv", "numbers.csv"):
        answer = run("evaluate", log, "--policy", "policy.json", "--out", "e.json")
        assert answer.exit_code == 0, answer.output
        answers.append(json.loads((tmp_path / "e.json").read_text())["numbers"])
    assert answers[0] == answers[1]

    # Columns that the policy does not look at help to guess outcomes, if they are numbers.
    more = [[*row, number % 7, "a text"] for number, row in enumerate(rows)]
    write_rows(tmp_path / "more.csv", [*head, "week", "officer"], more)
    assert run("evaluate", "more.csv", "--policy", "policy.json").exit_code == 0
    log = read_log(tmp_path / "more.csv", candidate=Candidate.read(str(tmp_path / "policy.json")))
    assert log.names == (*document["columns"], "week")
    assert [note.split(":")[0] for note in log.notes] == ["officer"]


def test_a_policy_that_decides_by_group_refuses_groups_it_has_never_seen(run, tmp_path):
    solved(run, tmp_path, "--fill-missing", "all", "--class", "stumps", "--group-use", "decide")
    head, rows = raw_log(6, 300)
    write_rows(tmp_path / "log.csv", head, rows)
    ask = ("evaluate", "log.csv", "--policy", "policy.json")
    answer = run(*ask)
    assert answer.exit_code == 0, answer.output
    refused(run(*ask, "--column", "group=home"), "never seen", "it knows f, m")


def test_without_probabilities_decisions_of_a_policy_are_measured_as_a_range(run, tmp_path):
    """What is said without an assumption: each outcome that is missing may be good or bad."""
    solved(run, tmp_path, "--fill-missing", "all", "--class", "stumps")
    head, rows = raw_log(7, 300)
    write_rows(tmp_path / "past.csv", head[:6], [row[:6] for row in rows])
    refused(
        run("evaluate", "past.csv", "--policy", "policy.json", "--column", "accept=id"),
        "the decision in row 1",
    )
    write_rows(tmp_path / "old.csv", [*head[:6], "accept"], [[*r[:6], r[7]] for r in rows])
    refused(
        run("evaluate", "old.csv", "--policy", "policy.json"),
        "holds no propensities",
        "evenhand apply",
        "evenhand measure",
    )
    assert run("apply", "policy.json", "past.csv", "--out", "decided.csv").exit_code == 0
    asked = ("--decision", "decision", "--outcome", "repaid", "--good", "yes", "--group", "sex")
    answer = run("measure", "decided.csv", *asked, "--rate", "fpr", "--out", "m.json")
    assert answer.exit_code == 0, answer.output
    found = json.loads((tmp_path / "m.json").read_text())["numbers"]["rates"][0]["groups"]
    with (tmp_path / "decided.csv").open() as file:
        decided = list(csv.DictReader(file))
    for one in found:
        here = [row for row in decided if row["sex"] == one["group"]]
        events = sum(row["decision"] == "1" and row["repaid"] == "no" for row in here)
        misses = sum(row["decision"] == "0" and row["repaid"] == "no" for row in here)
        perhaps = sum(row["decision"] == "1" and row["repaid"] == "" for row in here)
        never = sum(row["decision"] == "0" and row["repaid"] == "" for row in here)
        assert one["least"] == pytest.approx(events / (events + misses + never))
        assert one["largest"] == pytest.approx((events + perhaps) / (events + perhaps + misses))
