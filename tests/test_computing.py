"""Both forms of every loop give the same bits, and a missing or crippled numba stops nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand import computing
from evenhand.bounds import betting_wealth
from evenhand.computing import Kernel, compiled, computing_in, one_blas_thread
from evenhand.estimation import log
from evenhand.evaluation import log_betting
from evenhand.hypotheses import linear, thresholds

KERNELS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (thresholds, linear, betting_wealth, log, log_betting)
    for name, value in vars(module).items()
    if isinstance(value, Kernel)
}


def hard_numbers(draw, shape):
    """Numbers whose sums depend on the order of additions, zeros of both signs among them."""
    value = draw.normal(size=shape) * 10.0 ** draw.integers(-12, 12, shape)
    return np.where(draw.random(shape) < 0.2, draw.choice([0.0, -0.0, 1.0], size=shape), value)


def cut_arguments(draw):
    rows, columns = int(draw.integers(1, 60)), int(draw.integers(1, 20))
    bins, channels = draw.integers(1, 9, columns), int(draw.integers(1, 3))
    kind = draw.choice([np.uint8, np.uint16, np.int32])
    if kind is not np.uint8:  # columns that go through the rows alone
        bins[draw.random(columns) < 0.2] = thresholds.CODES_TOGETHER - 3
    codes = np.asarray(
        draw.integers(0, bins, (rows, columns)).astype(kind), order=draw.choice(["C", "F"])
    )
    starts = np.concatenate([[0], np.cumsum(bins)])
    totals = np.full((channels, 2 + 2 * (starts[-1] - columns)), -7.0)
    return codes, starts, hard_numbers(draw, (channels, rows)), totals


def score_arguments(draw):
    columns, rows, members = draw.integers(1, 6), draw.integers(0, 50), draw.integers(1, 4)
    table = np.asarray(hard_numbers(draw, (columns, rows)), order=draw.choice(["C", "F"]))
    return table, hard_numbers(draw, (members, columns)), np.empty((members, rows))


def wealth(draw, members, bets):
    """Convex in the rate as betting wealth is, some of it far above every threshold."""
    nodes = betting_wealth.NODES
    slope = draw.normal(size=(members, bets, 2, 1)) * 10.0 ** draw.integers(0, 3)
    at = draw.random((members, bets, 2, 1))
    bent = draw.random((members, bets, 2, 1)) * 4
    return slope * (nodes - at) + bent * (nodes - at) ** 2 + draw.normal(size=slope.shape)


def cells(draw, members):
    edges = betting_wealth.EDGES
    lower, upper = np.tile(edges[:-1], (members, 1)), np.tile(edges[1:], (members, 1))
    gone = draw.random(lower.shape) < draw.choice([0.0, 0.5, 1.0])
    cut = draw.random(lower.shape) < 0.3
    lower = np.where(cut, lower + (upper - lower) * draw.random(lower.shape), lower)
    return np.where(gone, 1.0, lower), np.where(gone, 0.0, upper)


def narrow_arguments(draw):
    members, bets = int(draw.integers(1, 6)), int(draw.integers(1, 5))
    threshold = draw.normal(size=(members, bets))
    fixed = (betting_wealth.EDGES, betting_wealth.LEFT_NODE)
    return (wealth(draw, members, bets), threshold, fixed, *cells(draw, members))


def gap_arguments(draw):
    members, bets = int(draw.integers(1, 6)), int(draw.integers(1, 5))
    two = (wealth(draw, members, bets), wealth(draw, members, bets))
    threshold = draw.normal(size=(members, bets)) * 10.0 ** draw.integers(-1, 2)
    fixed = (betting_wealth.EDGES, betting_wealth.LEFT_NODE)
    parts = (cells(draw, members), cells(draw, members))
    return (*two, parts, threshold, fixed)


def context_arguments(draw):
    rows, known = int(draw.integers(1, 80)), int(draw.integers(0, 40))
    values = np.array([-0.0, 0.0, 1.0, np.nextafter(1.0, 2.0), -1.0, 5e-324])
    one, two = (draw.choice(values, (n, 2)) for n in (known, rows))
    beside = draw.choice(values[:3], (rows + known, int(draw.integers(0, 3))))
    return one, two, beside, *(np.full(rows + known, -7) for _ in range(2))


def loss_arguments(draw):
    rows, bets = int(draw.integers(0, 80)), int(draw.integers(1, 5))
    base, policy = draw.random(rows), draw.choice([0.0, 0.3, 1.0], rows)
    inverse = draw.choice([1.0, 1.5, 20.0, 1e6], rows)
    flags = [draw.random(rows) < 0.5 for _ in range(3)]
    count = draw.integers(0, 5, rows).astype(float)
    bet = np.minimum(10.0 ** draw.uniform(-4, 0, bets), 0.5)
    seen = np.stack([base, policy - base, inverse, draw.random(rows), count])
    return seen, np.stack(flags), float(draw.random() * 0.5), bet, draw.normal(size=(5, bets))


ARGUMENTS = {
    "thresholds.cut_totals": cut_arguments,
    "linear.score_rows": score_arguments,
    "betting_wealth.narrow_cells": narrow_arguments,
    "betting_wealth.largest_gaps": gap_arguments,
    "log.number_rows": context_arguments,
    "log_betting.add_rows": loss_arguments,
}


def copied(value):
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.copy("K") if isinstance(value, np.ndarray) else value


def arrays(values):
    """Every array among the arguments, and in tuples among them."""
    for value in values:
        if isinstance(value, tuple):
            yield from arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


def bits(function, arguments):
    """The answer, and every argument afterwards, as bytes."""
    mine = [copied(value) for value in arguments]
    answer = function(*mine)
    if isinstance(answer, np.ndarray):
        mine.append(answer)
        answer = None
    elif answer is not None:  # how many of `first` have been written
        mine[3] = mine[3][:answer]
    return answer, [value.tobytes() for value in arrays(mine)]


def test_every_kernel_is_compared():
    assert set(ARGUMENTS) == set(KERNELS)


@pytest.mark.parametrize("name", sorted(KERNELS))
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_both_forms_give_the_same_bits(name, seed):
    kernel, arguments = KERNELS[name], ARGUMENTS[name](np.random.default_rng(seed))
    with np.errstate(over="ignore"):
        expected = bits(kernel.in_numpy, arguments)
        if "number_rows" not in name:  # plain Python warns of what wraps around
            assert bits(kernel.loop, arguments) == expected
        with computing_in("numba"):
            assert bits(kernel, arguments) == expected


def test_the_comparison_sees_another_order_of_additions():
    """Negative control: numpy's own sum adds in pairs."""
    kernel = log_betting.add_rows

    def pairwise(*given):
        kernel.in_numpy(*given[:-1], terms := np.zeros_like(given[-1]))
        given[-1][:] += terms

    seen = [loss_arguments(np.random.default_rng(seed)) for seed in range(20)]
    assert any(bits(pairwise, one) != bits(kernel.in_numpy, one) for one in seen)


def test_large_tables_are_cut_into_parts_that_change_no_bit():
    draw = np.random.default_rng(5)
    repeated = np.arange(3 * log_betting.AT_ONCE // 2)
    long = [value[:, repeated % value.shape[1]] for value in loss_arguments(draw)[:2]]
    few = (*long, 0.1, np.array([0.3, 0.01]), np.zeros((5, 2)))
    kernel = log_betting.add_rows
    assert bits(kernel.in_numpy, few) == bits(kernel.loop, few)


def doubled(values, out):
    for i in range(len(values)):
        out[i] = 2 * values[i]


def doubled_in_numpy(values, out):
    out[:] = 2 * values


class Counting:
    """Stands where numba is loaded, and counts."""

    def __init__(self, monkeypatch, answer):
        self.asked, self.answer = [], answer
        monkeypatch.setattr(computing, "_loaded", self)

    def __call__(self, loop, stored=True):
        self.asked.append(stored)
        return self.answer


def test_numba_is_loaded_once_numpy_has_worked_for_as_long(monkeypatch):
    kernel, loads = compiled(doubled_in_numpy, pays=100)(doubled), Counting(monkeypatch, doubled)
    values, out = np.arange(40.0), np.empty(40)
    for call in range(5):
        kernel(values, out)
        assert loads.asked == [True] * (call >= 2)
    with computing_in("numpy"):
        kernel(values, out)
    assert out.tolist() == (2 * values).tolist()


def test_without_numba_it_is_asked_for_once(monkeypatch):
    kernel, loads = compiled(doubled_in_numpy, pays=1)(doubled), Counting(monkeypatch, None)
    for _ in range(3):
        kernel(np.arange(4.0), out := np.empty(4))
    assert loads.asked == [True]
    assert out.tolist() == [0, 2, 4, 6]


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    loads = Counting(monkeypatch, full)
    kernel = compiled(doubled_in_numpy, pays=1)(doubled)
    monkeypatch.setattr(
        computing,
        "_loaded",
        lambda loop, stored=True: (loads(loop, stored), full if stored else doubled)[1],
    )
    kernel(np.arange(4.0), out := np.empty(4))
    assert loads.asked == [True, False]
    assert out.tolist() == [0, 2, 4, 6]


def test_blas_has_one_thread_inside():
    from threadpoolctl import threadpool_info

    with one_blas_thread():
        counts = {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}
    assert counts <= {1}


WORK = """
import hashlib, json, sys
import numpy as np
if sys.argv[1] == "blocked":
    sys.modules["numba"] = None
import evenhand as eh
from evenhand.computing import computing_in
said = {}
with computing_in("numba"):
    people = eh.environments.Scores().draw(3_000, np.random.default_rng(3))
    wide = np.column_stack([people.features, np.random.default_rng(4).integers(0, 9, (3_000, 3))])
    sample = eh.LabelledSample(wide, people.group, people.label)
    problem = eh.Prices().problem(wide, people.group, people.label)
    for rules in (eh.Stumps(), eh.Stumps(max_bins=16), eh.ScoreThresholds(), eh.Linear()):
        found = eh.solve_fair(problem, rules, eh.FalsePositiveRate(), sample, 0.02)
        said[str(rules)] = [found.cost.hex(), found.gaps.tobytes().hex(), found.policy.describe()]
    for rules in (eh.Stumps(max_bins=8), eh.ScoreThresholds()):
        learner = eh.CertifiedLearner(
            rules, eh.FalsePositiveRate(), limit=0.2, delta=0.05, seed=1
        )
        for at in range(0, 3_000, 250):
            made = learner.decide(wide[at : at + 250], people.group[at : at + 250])
            yes = np.flatnonzero(made.accept)
            learner.observe(made.round[yes], people.label[at : at + 250][yes])
        said["life " + str(rules)] = [learner.policy.describe(), learner.certificate.describe()]
said["digest"] = hashlib.sha256(json.dumps(said).encode()).hexdigest()
said["loaded"] = bool(sys.modules.get("numba"))
print(json.dumps(said))
"""


def work(how, **more):
    done = subprocess.run(
        [sys.executable, "-c", WORK, how], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_solves_and_runs_without_numba_are_the_same_bit_for_bit():
    pytest.importorskip("numba")
    without, compiled_ = work("blocked"), work("compiled")
    assert compiled_["loaded"]
    assert not without["loaded"]
    for name in without:
        if name != "loaded":
            assert without[name] == compiled_[name], name


@pytest.mark.slow
def test_a_read_only_installation_without_a_home_still_solves(tmp_path):
    """A hardened container: nothing beside the package, at home or in the settings can be written.

    Root may write everywhere, so the cache is kept off by files that stand where folders would.
    """
    pytest.importorskip("numba")
    package = tmp_path / "site" / "evenhand"
    shutil.copytree(
        Path(evenhand.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH")
    }
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("no folder")
    environment |= {
        "PYTHONPATH": str(tmp_path / "site"),
        "HOME": str(nowhere),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    said = work("compiled", env=environment, cwd=tmp_path)
    assert said["loaded"]
    naive = "from numba import njit; from evenhand.hypotheses.linear import score_rows as kernel; "
    failed = subprocess.run(  # the negative control
        [sys.executable, "-c", naive + "njit(kernel.loop, cache=True)"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert "cannot cache function" in failed.stderr
    assert said["digest"] == work("blocked")["digest"]


@pytest.mark.slow
def test_a_switched_off_compiler_is_not_used():
    """NUMBA_DISABLE_JIT would run the loops as plain Python, hundreds of times slower."""
    pytest.importorskip("numba")
    code = (
        "import numpy as np\n"
        "from evenhand.computing import computing_in\n"
        "from evenhand.hypotheses.linear import score_rows\n"
        "with computing_in('numba'):\n"
        "    score_rows(np.ones((2, 3)), np.ones((1, 2)), np.empty((1, 3)))\n"
        "print(score_rows._compiled is score_rows.in_numpy)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    ).stdout
    assert said.strip() == "True"
