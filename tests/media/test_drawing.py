"""Looks, labels, files, and SVG for a page."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from evenhand.errors import EvenhandError
from evenhand.media.drawing import (
    ALARM,
    LOOKS,
    SPARE,
    Panel,
    css_variable,
    draw_panels,
    inline_svg,
    looks,
    require,
    save_figure,
    short_number,
    spread_apart,
    step_corners,
)


def test_looks_are_the_same_in_every_figure_and_differ_between_learners():
    assert looks(["exp4", "two-phase"])["two-phase"] == looks(["two-phase"])["two-phase"]
    assert looks(["a", "two-phase", "b"])["b"] == SPARE[1]
    known = [*LOOKS.values(), *SPARE]
    assert len({look.colour for look in known}) == len({look.dark for look in known}) == len(known)
    assert len({(str(look.dash), look.width) for look in LOOKS.values()}) >= len(LOOKS) - 1
    assert len({css_variable(look.colour) for look in known}) == len(known)


def test_contrast_of_names_on_the_page():
    """Names are written in the learner's colour: at least 3:1 against white and against the dark
    page, the measure for large text."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for name, look in [*LOOKS.items(), *enumerate(SPARE)]:
        assert contrast(look.colour, "#ffffff") >= 3, name
        assert contrast(look.dark, "#14171a") >= 4.5, name


def diagonal(axes):
    axes.plot([0, 1], [0, 1], color=LOOKS["exp4"].colour)
    axes.axhline(0.5, color=ALARM)


def test_an_svg_for_a_page_has_a_label_its_own_ids_and_the_colours_of_the_page():
    svg = inline_svg(Panel(diagonal, 'a "line" & more'), (3, 2), "x1")
    drawn = ElementTree.fromstring(svg)
    assert drawn.get("role") == "img"
    assert drawn.get("aria-label") == 'a "line" & more'
    assert drawn.get("viewBox")
    assert drawn.get("width") is None
    assert drawn.get("height") is None
    ids = [node.get("id") for node in drawn.iter() if node.get("id")]
    assert ids
    assert all(name.startswith("x1-") for name in ids)
    assert f"var({css_variable(LOOKS['exp4'].colour)})" in svg
    assert "var(--alarm)" in svg
    assert "var(--ink)" in svg
    assert ALARM not in svg
    assert "metadata" not in svg


def test_panels_fill_rows_and_the_rest_stays_empty():
    figure = draw_panels([Panel(diagonal, "d")] * 3, 2, (3, 2))
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]
    assert figure.get_size_inches().tolist() == [6, 4]


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, ending):
    for name in ("a", "b"):
        save_figure(draw_panels([Panel(diagonal, "d")], 1, (3, 2)), tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_missing_package_is_named_with_the_way_out(monkeypatch, package):
    require("matplotlib", "jinja2")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EvenhandError, match=rf"{package}.*\.\[plots\]"):
        require("matplotlib", "jinja2")


def test_steps_have_the_value_of_every_round():
    x, y = step_corners(np.array([100, 1000]), np.array([0.1, 0.3]), 10.0)
    assert x.tolist() == [10, 100, 100, 1000]
    assert y.tolist() == [0.1, 0.1, 0.3, 0.3]


def test_labels_move_apart_and_stay_in_the_frame():
    placed = spread_apart(np.array([0.0, 0.01, 0.02, 0.98, 1.0]), 0.07)
    assert (np.diff(placed) >= 0.0699).all()
    assert placed[0] >= 0
    assert placed[-1] <= 1
    assert spread_apart(np.array([0.2, 0.9]), 0.07).tolist() == [0.2, 0.9]
    assert spread_apart(np.array([-0.3]), 0.07).tolist() == [0.0]
    assert len(spread_apart(np.zeros(0), 0.07)) == 0


def test_short_numbers():
    assert short_number(-1500) == "\u22121.5k"
    assert short_number(0.05) == "0.05"
