"""Results show themselves: as frames, as pictures, as tables of a notebook."""

import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass, is_dataclass

import matplotlib as mpl
import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.learners import AcceptAll
from evenhand.shown import ROWS_SHOWN, Brief, Shown, brief, plain, plain_fields
from evenhand.simulation import record

mpl.use("Agg")
WORLD = eh.environments.lending()
FPR = eh.FalsePositiveRate()


def run():
    learner = eh.CertifiedLearner(WORLD.hypotheses, FPR, 0.1, 0.05)
    return eh.simulate(learner, WORLD, rounds=20_000, seed=0, comparator_gap=0.1)


MADE = {
    "run": run,
    "certified learner": lambda: run().learner,
    "accept all": lambda: eh.simulate(AcceptAll(), WORLD, rounds=10, seed=0).learner,
}


@pytest.fixture(scope="module", params=MADE)
def shown(request):
    return MADE[request.param]()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_holds_the_columns(shown, library):
    frame = shown.to_frame(library)
    columns = shown._columns()
    assert list(frame.columns) == list(columns)
    assert all(list(frame[name]) == list(values) for name, values in columns.items())


def test_it_draws_into_axes_of_one_s_own_or_new_ones(shown):
    from matplotlib import pyplot

    _, axes = pyplot.subplots()
    assert shown.plot(axes) is axes
    drawn = shown.plot()
    assert drawn is not axes
    assert drawn.has_data() or drawn.texts
    drawn.figure.canvas.draw()
    pyplot.close("all")


def test_a_notebook_shows_a_headline_and_a_short_table(shown):
    html = shown._repr_html_()
    assert html.count("<tr>") <= 2 + ROWS_SHOWN
    assert "<a>" not in html, "labels of groups are escaped"
    assert "<b>" in html


def test_figures_are_those_of_the_result():
    result = run()
    frame = result.to_frame()
    assert frame["gap"].max() == result.worst_gap
    assert frame["round"].iloc[-1] == 20_000
    assert frame["accepted"].sum() == result.accepted.sum()
    learner = result.learner.to_frame()
    assert learner["rounds"].sum() == result.learner.round
    assert (learner["gap_high"] <= 0.1 + 1e-9).all()
    assert (learner["gap_low"] >= -0.1 - 1e-9).all()


def test_a_long_table_is_shown_from_both_ends():
    class Long(Shown):
        def _headline(self):
            return "long"

        def _columns(self):
            return {"n": list(range(100))}

        def _draw(self, axes):
            axes.plot(self._columns()["n"])

    html = Long()._repr_html_()
    assert "<td>0</td>" in html
    assert "<td>99</td>" in html
    assert "<td>50</td>" not in html
    assert "100 rows" in html


def test_an_unknown_library_is_refused_with_those_that_are_known():
    with pytest.raises(InvalidInput, match="'dask'"):
        run().to_frame("dask")


@pytest.mark.parametrize(("missing", "call"), [("pandas", "to_frame()"), ("matplotlib", "plot()")])
def test_a_missing_package_is_named_with_the_way_out(missing, call):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.modules['{missing}.pyplot'] = None\n"
        "import evenhand as eh\n"
        "try:\n    eh.simulate(eh.learners.AcceptAll(), eh.environments.lending(), 5, 0)."
        f"{call}\nexcept eh.EvenhandError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"needs {missing}" in done.stdout, done.stderr
    assert re.search(r"Hint: .*pip install", done.stdout)
    assert issubclass(InvalidInput, EvenhandError)


def test_long_values_are_shown_by_their_size_and_first_values():
    assert brief(np.arange(6.0).reshape(2, 3) / 3) == "<2 x 3: 0, 0.3333, 0.6667, ...>"
    assert brief(np.array(["a", None], dtype=object)) == "<2: 'a', None>"
    assert brief(np.zeros(0)) == "<0: >"
    assert (brief(()), brief((1, 2)), brief("abc")) == ("()", "(1, 2)", "'abc'")


def test_records_of_a_run_are_one_line_each():
    world = eh.environments.lending()
    run = eh.simulate(AcceptAll(), world, rounds=100, seed=0)
    assert repr(run).startswith("<Run of AcceptAll: 100 rounds, regret ")
    text = repr(record(run, world, 0.1))
    assert text.startswith("RunRecord(seed=0, rounds=<1: 100>, regret=<1: ")
    assert "array(" not in text


FACES = (
    *("evenhand", "evenhand.bandit", "evenhand.bounds", "evenhand.environments"),
    *("evenhand.estimation", "evenhand.evaluation", "evenhand.faircsc", "evenhand.fairness"),
    *("evenhand.learners", "evenhand.planning", "evenhand.policies", "evenhand.simulation"),
    *("evenhand.tables", "evenhand.testing"),
)
RECORDS = {
    f"{face}.{name}": thing
    for face in FACES
    for name, thing in inspect.getmembers(importlib.import_module(face))
    if name in importlib.import_module(face).__all__
    if inspect.isclass(thing) and is_dataclass(thing)
}


def prints_arrays(record):
    """Whether a record has arrays, and prints all of its fields as dataclasses do."""
    texts = [str(one.type) for one in vars(record)["__dataclass_fields__"].values() if one.repr]
    generated = hasattr(record.__repr__, "__wrapped__")
    return generated and any("ndarray" in text and "Callable" not in text for text in texts)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_no_public_record_prints_whole_arrays(record):
    assert not prints_arrays(record), "its bases lack Brief, its decorator repr=False"


def test_a_record_that_prints_whole_arrays_is_noticed():
    @dataclass
    class Loud:
        values: np.ndarray

    assert prints_arrays(Loud)


def large_records():
    """Records of 3,000 people, a rule of 500 contexts and a mixture of 60 rules."""
    draw = np.random.default_rng(0)
    features, group = draw.normal(size=(3000, 4)), draw.choice(["a", "b"], 3000)
    sample = eh.LabelledSample(features, group, draw.choice([-1, 1], 3000))
    prices = eh.Prices(draw.random(3000), draw.random(3000))
    problem = prices.problem(features, group, sample.label)
    rules = [eh.hypotheses.TableRow(tuple((draw.random(500) < 0.5).tolist())) for _ in range(60)]
    learner = run().learner
    yield from (sample, prices, problem, rules[0])
    yield eh.policies.Mixture(tuple(rules), (1 / 60,) * 60)
    yield eh.solve_fair(problem, eh.Stumps(), FPR, sample, 0.05)
    yield eh.faircsc.frontier(problem, eh.Stumps(), FPR, sample, np.linspace(0, 0.2, 9))
    yield from (learner.report, learner.certificate, learner.policy)
    yield learner.decide(WORLD.features[draw.integers(0, 60, 3000)], draw.choice(WORLD.group, 3000))


def test_large_records_are_a_few_lines_each():
    for large in large_records():
        text, name = repr(large), type(large).__name__
        assert "array(" not in text, name
        assert len(text) <= 10 * 100, name
        assert text.count("\n") <= 10, name


def test_a_record_as_plain_json():
    @dataclass(repr=False)
    class Curve(Brief):
        name: str
        values: np.ndarray

    curve = Curve("gap", np.array([[0.5, np.nan], [np.inf, 1.0]]))
    assert plain_fields(curve) == {"name": "gap", "values": [[0.5, None], [None, 1.0]]}
    assert plain({"curves": (curve,), "people": 3}) == {"curves": [plain(curve)], "people": 3}
    assert plain(eh.Prices().problem(np.zeros((2, 1)), ["a", "b"], [1, -1]))["group"] == ["a", "b"]
