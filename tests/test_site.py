"""The pages of the documentation, checked without building them: every public name has its page,
every page is reached, the site stays small, and the search is ranked as in a browser.
"""

import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from scripts.results import Results
from tests.tools import need

pytest.importorskip("sphinx", reason="the reference is written with Sphinx's help")

DOCS = Path(__file__).parents[1] / "docs"


def reference():
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = reference()


@pytest.mark.parametrize("face", REFERENCE.FACES)
def test_every_public_name_is_in_the_reference(face):
    text = REFERENCE.page_of(face)
    listed = set(re.findall(r"^   ~([\w.]+)$", text, flags=re.M))
    listed |= set(re.findall(r"^\.\. py:\w+:: ([\w.]+)$", text, flags=re.M))
    assert len(listed) == len({name.rpartition(".")[2] for name in listed})
    missing = [
        name
        for name in REFERENCE.public_names(face)
        if name not in {one.rpartition(".")[2] for one in listed}
        if f"{face}.{name}" not in REFERENCE.FACES
    ]
    assert missing == []
    for name in listed:  # each one is what its face calls so
        home, _, last = name.rpartition(".")
        assert getattr(importlib.import_module(home), last) is getattr(
            importlib.import_module(face), last
        )


def test_a_name_that_is_missing_is_seen(monkeypatch):
    import evenhand

    monkeypatch.setattr(evenhand, "brand_new", len, raising=False)
    monkeypatch.setattr(evenhand, "__all__", [*evenhand.__all__, "brand_new"])
    assert "~evenhand.brand_new" in REFERENCE.page_of("evenhand")


def pages():
    """The pages of the site that people write; those of the service are in service/docs."""
    others = ("api", "service", "decisions", "notes", "_templates", "_static")
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return sorted(path for path in found if path.parts[0] not in others)


def test_every_page_is_reached_from_the_index():
    reached, open_ = set(), [Path("index.md")]
    while open_:
        page = open_.pop()
        if page in reached:
            continue
        reached.add(page)
        text = (DOCS / page).read_text(encoding="utf-8")
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S):
            for line in tree.splitlines():
                entry = re.sub(r"^.*<(.*)>$", r"\1", line.strip())
                if entry and not entry.startswith(":"):
                    below = (DOCS / page.parent).glob(f"{entry}.md")
                    open_ += [path.resolve().relative_to(DOCS) for path in below]
    assert [str(page) for page in pages() if page not in reached] == []


MOST_WORDS = {"the library": 22_000, "the service": 6_000}
"""Words that people wrote, outside code."""
GENERATED = ("http.md", "settings.md")
"""Pages of service/docs that are written from the code, as the reference and the commands are."""


def words(text: str) -> int:
    """Words with a letter in them, of text and tables; the head of a page and its code are none."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    code = r"^(```+)(\{code-cell\}[^\n]*|[a-z]*)\n.*?^\1$"
    body = re.sub(code, "", body, flags=re.S | re.M)
    return sum(re.search("[A-Za-z]", word) is not None for word in body.split())


def test_the_site_stays_small():
    service = DOCS.parent / "service" / "docs"
    written = {
        "the library": [DOCS / page for page in pages()],
        "the service": [page for page in service.glob("*.md") if page.name not in GENERATED],
    }
    assert len(written["the library"]) > 30
    for part, found in written.items():
        counted = sum(words(page.read_text(encoding="utf-8")) for page in found)
        assert counted <= MOST_WORDS[part], part


def test_words_are_counted_without_signs():
    assert words("---\na: b\n---\n| a | 1.5 | `x = 2` |\n```python\nno = word\n```\n") == 2


def measured():
    spec = importlib.util.spec_from_file_location("measured", DOCS / "measured.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES_OF_RESULTS = {
    "claims": "guarantee/claims.md",
    "claims-tables": "guarantee/claims.md",
    "bench": "guarantee/benchmarks.md",
    "torture": "guarantee/benchmarks.md",
}


@pytest.mark.parametrize("kind", PAGES_OF_RESULTS)
def test_the_pages_show_the_results_that_were_kept(kind):
    page = (DOCS / PAGES_OF_RESULTS[kind]).read_text(encoding="utf-8")
    assert f'show("{kind}"' in page
    table = measured().as_markdown(kind).splitlines()
    if not (DOCS / "measured" / f"{kind}.json").exists() or not measured().read(kind)["whole"]:
        assert table == [f"*No results of a whole `make {kind}` are kept for this version.*"]
        return
    kept = measured().read(kind)
    rows = [line for line in table if line.startswith("| ")][1:]
    assert len(rows) == len(kept["rows"]) > 0
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows), "a cell holds a bar"
    assert kept["ended"][:10] in table[0]


def test_what_it_costs_on_real_tables_is_what_was_kept():
    if not measured().is_kept("claims-tables"):
        pytest.skip("no results of make claims-tables are kept")
    kept = {row["row"]: row["figure"] for row in measured().read("claims-tables")["rows"]}
    table = [line for line in measured().regret_as_markdown().splitlines() if line[:2] == "| "]
    assert len(table) == 1 + 4 * 2
    adult = kept["real tables, adult, FNR: regret over the best constant's, T=1e5"]
    mean, worst = re.match(r"(\S+) .* seed (\S+)\)", adult).groups()
    assert table[1].startswith("| Adult | 100,000 | ")
    assert table[1].split(" | ")[3] == f"{float(mean):.2f} ({float(worst):.2f})"
    violations = [kept[name] for name in kept if "runs with any violation" in name]
    assert violations
    assert all(figure.startswith("0 ") for figure in violations)


def test_rows_that_hold_are_folded_and_misses_are_not():
    rows = ["| row | target | figure | holds |", "|---|---|---|---|"]
    rows += ["| a | 1 | 2 | **missed** |", "| b | 1 | 1 | yes |"]
    told = measured().folded("\n".join(["`make x`: 2 rows", "", *rows]))
    before, after = told.split("<details><summary>Rows that hold: 1</summary>")
    assert "| a |" in before
    assert "| b |" not in before
    assert "| b |" in after
    assert "| a |" not in after


def test_the_cause_of_a_change_is_told_in_kept_figures(tmp_path, monkeypatch):
    module = measured()
    monkeypatch.setattr(module, "KEPT", tmp_path)
    rows = [
        {"row": "one pass over the columns of Adult, beside", "note": "4 ms against 11 ms; 8 rows"},
        {
            "row": "fairlearn 0.1 and 0.2 with our bound stump, beside 0.3",
            "figure": "0.8 x and 0.9 x the CPU time (median)",
        },
    ]
    (tmp_path / "bench.json").write_text(json.dumps({"rows": rows}))
    told = module.cause_of_the_stumps()
    assert "(now 4 ms against 11 ms on Adult)" in told
    assert told.endswith("fairlearn 0.1 and 0.2 take 0.8 x and 0.9 x the time of 0.3.")
    (tmp_path / "bench.json").write_text(json.dumps({"rows": [rows[0], *rows]}))
    with pytest.raises(ValueError, match="too many"):
        module.cause_of_the_stumps()


def test_results_are_written_as_they_come_and_kept_if_they_are_whole(tmp_path, monkeypatch):
    need("git")  # rows name the commit
    module = measured()
    monkeypatch.setattr(module, "KEPT", tmp_path)
    run = tmp_path / "run.json"
    results = Results(run, whole=True)
    results.add({"row": "held", "target": "1", "figure": "1", "holds": True})
    with pytest.raises(SystemExit, match="whole"):  # cut short
        module.keep("bench", run)
    results.add({"row": "a|b", "target": "<= 3 x", "figure": "4 x", "holds": False})
    results.finish()
    module.keep("bench", run, "On a busy machine.")
    kept = module.read("bench")
    assert kept["where"]["commit"]
    table = module.as_markdown("bench").splitlines()
    assert "1 of them miss their target." in table[0]
    assert "On a busy machine." in table[0]
    assert table[4] == "| a\\|b | \\<= 3 x | 4 x | **missed** |"  # misses first
    part = Results(run, whole=False)
    part.add({"row": "held", "target": "1", "figure": "1", "holds": True})
    part.finish()
    with pytest.raises(SystemExit, match="whole"):
        module.keep("bench", run)


def test_a_run_that_was_cut_short_is_continued_with_the_rows_of_its_finished_parts(tmp_path):
    need("git")
    run = tmp_path / "run.json"
    first = Results(run, whole=True)
    first.add({"row": "one", "part": "a"})
    first.part_is_done("a")
    first.add({"row": "two, half measured", "part": "b"})
    second = Results(run, whole=True, go_on=True)
    assert second.parts == ["a"]
    second.add({"row": "two", "part": "b"})
    second.part_is_done("b")
    second.finish()
    found = json.loads(run.read_text())
    assert [row["row"] for row in found["rows"]] == ["one", "two"]
    assert found["whole"]
    assert all(row["commit"] for row in found["rows"])
    assert Results(run, whole=True).rows == []


def test_what_stands_indented_in_a_docstring_is_shown_as_it_is():
    told = ["Two lines:", "", "    a = |H|", "    b = 2", "", "More.", ":Parameters:", "", "    x"]
    assert REFERENCE.show_indented(told) == {2, 3, 4}
    assert told[0] == "Two lines::"
    assert told[6] == ":Parameters:"


def check_site():
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_check_of_a_built_site_sees_what_is_wrong(tmp_path):
    (tmp_path / "good.html").write_text('<a href="other.html#here">x</a><img src="a.png">')
    (tmp_path / "other.html").write_text('<p id="here"><a href="https://example.org">away</a></p>')
    (tmp_path / "a.png").write_bytes(b"")
    look = check_site().faults
    assert list(look(tmp_path)) == []
    (tmp_path / "bad.html").write_text(
        '<script src="https://cdn.example.org/x.js"></script><img src="b.png">'
        '<a href="other.html#there">x</a>'
    )
    assert [fault.split(" ", 1)[1] for fault in look(tmp_path)] == [
        "loads https://cdn.example.org/x.js",
        "points to b.png, which is not there",
        "points to other.html#there, which has no such part",
    ]


def test_the_search_is_ranked_as_sphinx_does():
    index = {
        "docnames": ["a", "b", "c"],
        "titles": ["Install", "Missing values in tables", "Other"],
        "alltitles": {"Install": [[0, None]], "Missing values": [[2, "m"]]},
        "indexentries": {"missing values": [[1, "index-0", True]], "install": [[2, "i", False]]},
        "terms": {"instal": [0, 2], "miss": [1, 2], "valu": [1, 2]},
        "titleterms": {"instal": 0, "miss": [1], "valu": [1]},
    }
    ranked = check_site().ranked
    assert ranked(index, "install") == ["a", "c"]  # an entry that is not the main one comes last
    assert ranked(index, "missing values") == ["b", "c"]
    assert ranked(index, "nothing") == []


def test_a_search_that_leads_elsewhere_is_seen(tmp_path):
    look = check_site()
    index = {name: {} for name in ("alltitles", "indexentries", "terms", "titleterms")}
    index |= {"docnames": ["start"], "titles": ["Start"], "alltitles": {"Install": [[0, "i"]]}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    wrong = list(look.search_faults(tmp_path))
    assert len(wrong) == len(look.SEARCHES) - 1
    assert not any("'install'" in fault for fault in wrong)


def test_a_browser_sees_formulas_in_error_and_what_is_cut_off(tmp_path):
    pytest.importorskip("playwright.sync_api")
    browser = need("browser", "libatomic")
    (tmp_path / "good.html").write_text(
        '<article class="bd-article"><p>Words <span class="math"><mjx-container><svg>'
        "</svg></mjx-container></span></p></article>"
    )
    look = check_site().seen_faults
    assert list(look(tmp_path, browser)) == []
    wrong = '<mjx-container><svg><g data-mml-node="merror"></g></svg></mjx-container>'
    (tmp_path / "bad.html").write_text(
        f'<body style="overflow: hidden"><article class="bd-article">{wrong}<img src="none.png">'
        f'<span class="math">x^2</span><p><code>{"name" * 200}</code></p></article></body>'
    )
    seen = "\n".join(look(tmp_path, browser))
    for width in (1280, 390):
        assert f"bad.html at {width}: 1 formulas in error, 1 not drawn" in seen
        assert f"bad.html at {width}: 1 pictures are not shown" in seen
        assert f"bad.html at {width} is cut off at the right: namename" in seen
    assert "good.html" not in seen
