import numpy as np
import pytest

import evenhand as eh
from evenhand.cli.demo import lending_csv
from evenhand.report import draw_region, save_figure
from evenhand.report.region import RegionPicture, clip_strip

FPR = eh.FalsePositiveRate()
DIAMOND = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def area(polygon):
    x, y = polygon.T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


@pytest.fixture(scope="module")
def lending():
    rows = [line.split(",") for line in lending_csv().splitlines()[1:]]
    features = np.array([[float(v) for v in row[:5]] for row in rows])
    group, label = (
        np.array([row[5] for row in rows]),
        np.where([row[6] == "yes" for row in rows], 1, -1),
    )
    sample = eh.LabelledSample(features, group, label)
    return eh.Prices().problem(features, group, label), sample


@pytest.fixture(scope="module")
def traced(lending):
    problem, sample = lending
    return eh.faircsc.frontier(problem, eh.Stumps(), FPR, sample, [0.0, 0.05, 0.1, 0.2, 0.3])


def test_the_strip_of_a_diamond():
    assert area(clip_strip(DIAMOND, -0.5, 0.5)) == pytest.approx(2 - 0.5)
    assert area(clip_strip(DIAMOND, 0.5, 2.0)) == pytest.approx(0.25)
    assert len(clip_strip(DIAMOND, 1.5, 2.0)) == 0
    assert {tuple(point) for point in clip_strip(DIAMOND, 0.0, 0.0)} == {(0, -1), (0, 1)}
    assert clip_strip(DIAMOND, -2, 2).tolist() == DIAMOND.tolist()


def test_a_limit_of_zero_leaves_the_whole_middle_line(traced):
    picture = RegionPicture.of(traced, 0.0, 1200, False)
    line = clip_strip(picture.region, -0.0, 0.0)
    assert (line[:, 0] == 0).all()
    assert line[:, 1].max() == pytest.approx(picture.optimum[1], abs=1e-12)
    assert line[:, 1].min() < picture.reject_all[1]


def test_the_three_parts_make_up_the_region(traced):
    region = RegionPicture.of(traced, 0.05, 1200, False).region
    parts = [clip_strip(region, low, high) for low, high in ((-2, -0.05), (-0.05, 0.05), (0.05, 2))]
    assert sum(map(area, parts)) == pytest.approx(area(region))


def test_opt_is_the_best_point_of_the_green_part(traced):
    picture = RegionPicture.of(traced, 0.05, 1200, False)
    green = clip_strip(picture.region, -0.05, 0.05)
    assert picture.optimum[1] == pytest.approx(green[:, 1].max(), abs=1e-12)
    assert picture.unlimited[1] == pytest.approx(picture.region[:, 1].max())
    assert picture.accept_all == pytest.approx([0, 687 / 1200])
    assert picture.reject_all == pytest.approx([0, 513 / 1200])


def test_everything_is_labelled(traced):
    figure = draw_region(traced, 0.05, people=1200, rate=FPR, groups=("a", "b"))
    left, right = figure.axes
    assert "false positive rate: b" in left.get_xlabel()
    assert "accuracy" in left.get_ylabel()
    assert "limit" in right.get_xlabel()
    legends = [axes.get_legend().get_texts() for axes in (left, right)]
    names = " ".join(text.get_text() for legend in legends for text in legend)
    words = ("OPT", "accept all applicants", "reject all applicants", "without a limit", "±0.05")
    assert all(word in names for word in words)


def overlapping(figure):
    """Pairs of texts outside the axes whose boxes overlap, and texts beyond the figure."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    texts = []
    for axes in figure.axes:
        texts += [
            axes.xaxis.label,
            axes.yaxis.label,
            axes.title,
            axes._left_title,
            *axes.get_legend().get_texts(),
        ]
        texts += [*axes.get_xticklabels(), *axes.get_yticklabels()]
        low_x, high_x = axes.get_xlim()
        low_y, high_y = axes.get_ylim()
        texts = [
            t
            for t in texts
            if not (t in axes.get_xticklabels() and not low_x <= t.get_position()[0] <= high_x)
            and not (t in axes.get_yticklabels() and not low_y <= t.get_position()[1] <= high_y)
        ]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text().strip()]
    right, top = figure.bbox.x1, figure.bbox.y1
    outside = [
        name
        for name, box in boxes
        if box.x0 < 0 or box.y0 < 0 or box.x1 > right or box.y1 > top  # beyond the figure
    ]
    pairs = [(a, b) for i, (a, p) in enumerate(boxes) for b, q in boxes[i + 1 :] if p.overlaps(q)]
    return outside + pairs


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
@pytest.mark.parametrize(
    "groups",
    [("a", "b"), ("women and girls of the whole region", "men and boys of the whole region")],
)
def test_nothing_overlaps(traced, limit, groups):
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = draw_region(traced, limit, people=1200, rate=FPR, groups=groups)
    figure.suptitle("t", fontsize=13, fontweight="bold")
    FigureCanvasAgg(figure)
    assert overlapping(figure) == []


def test_the_same_figure_gives_the_same_file(traced, tmp_path):
    for ending in ("svg", "pdf"):
        for name in ("one", "two"):
            figure = draw_region(traced, 0.05, people=1200, rate=FPR, groups=("a", "b"))
            save_figure(figure, tmp_path / f"{name}.{ending}")
        one, two = (tmp_path / f"{name}.{ending}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_a_table_on_which_only_constants_differ(tmp_path):
    features, group = np.ones((40, 1)), np.array(["a", "b"] * 20)
    label = np.where(np.arange(40) % 5 == 0, -1, 1)
    sample, problem = (
        eh.LabelledSample(features, group, label),
        eh.Prices().problem(features, group, label),
    )
    traced = eh.faircsc.frontier(problem, eh.Stumps(), FPR, sample, [0.0, 0.1])
    picture = RegionPicture.of(traced, 0.1, 40, False)
    assert sorted(picture.region[:, 1].round(12).tolist()) == [0.2, 0.8]
    assert not picture.price.any()
    save_figure(
        draw_region(traced, 0.1, people=40, rate=FPR, groups=("a", "b")),
        tmp_path / "c.png",
    )


def test_priced_pictures_show_cost(lending):
    _, sample = lending
    priced = eh.Prices(5000, 800).problem(sample.features, sample.group, sample.label)
    traced = eh.faircsc.frontier(priced, eh.Stumps(), FPR, sample, [0.0, 0.1])
    picture = RegionPicture.of(traced, 0.1, 1200, True)
    assert picture.unlimited[1] == pytest.approx(picture.region[:, 1].min())
    assert picture.accept_all[1] == pytest.approx(5000 * 513 / 1200)
    figure = draw_region(traced, 0.1, people=1200, rate=FPR, groups=("a", "b"), priced=True)
    assert "cost per person" in figure.axes[0].get_ylabel()
