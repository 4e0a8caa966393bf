"""Looks at the pages that were built: `python docs/check_site.py site [--browser PATH]`.

Nothing is loaded from elsewhere, every link inside the site leads somewhere, every picture is
there, and common searches lead to the right page first. With --browser each page is also opened in
chromium, in the width of a desk and of a phone: no table or formula is wider than its column on a
desk, no page scrolls sideways, no formula is in error, no request leaves the folder, and the search
of the site itself agrees.
"""

import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

DESK, PHONE = 1280, 390
SEARCHES = {
    "install": "start",
    "demographic parity": "concepts/which-rate",
    "equal opportunity": "concepts/which-rate",
    "missing values": "how-to/your-table",
    "how many people": "how-to/planning",
    "late labels": "how-to/late-labels",
    "exit code": "api/commands",
}
"""What people look for, and the page that should come first."""
MEASURE = """() => {
  const column = document.querySelector('.bd-article') || document.body;
  const tables = [...column.querySelectorAll('table')];
  const scrolls = e => e && e !== column && (  // the theme's own box round the page does not count
    getComputedStyle(e).overflowX === 'auto' || scrolls(e.parentElement));
  const beyond = e => e.getBoundingClientRect().right > window.innerWidth + 1;
  return {
    tables: tables.length,
    wide: tables.filter(t => t.scrollWidth > t.parentElement.clientWidth + 1).length,
    cut: [...column.querySelectorAll('div.math')].filter(
      f => f.scrollWidth > f.clientWidth + 1).length,
    beyond: [...column.querySelectorAll('p, li, h1, h2, h3, dt, code, pre, img, table')].filter(
      e => beyond(e) && !scrolls(e)).map(e => e.textContent.trim().slice(0, 60)),
    sideways: document.documentElement.scrollWidth > window.innerWidth + 1,
    formulas: document.querySelectorAll('mjx-container').length,
    wrong: document.querySelectorAll('mjx-merror, [data-mml-node="merror"]').length,
    raw: [...document.querySelectorAll('span.math, div.math')].filter(
      f => !f.querySelector('mjx-container')).length,
    empty: [...document.images].filter(i => !(i.complete && i.naturalWidth)).length,
  };
}"""


class Page(HTMLParser):
    """The names that a page defines, and what it points to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort what a tag points to into links and things that are loaded with the page."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("canonical", "search", "next", "prev"):
            self.loaded.append(given.get("href", ""))
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loaded.append(given["src"])


def built(site: Path) -> list[Path]:
    """The pages; what lies in _static are parts of the theme."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def faults(site: Path) -> Iterator[str]:
    """What is wrong with the links and the loads of a site."""
    pages = {path: Page(path) for path in built(site)}
    for path, page in pages.items():
        where = path.relative_to(site)
        for target in page.loaded + page.links:
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if target in page.loaded:
                    yield f"{where} loads {target}"
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not goal.exists():
                yield f"{where} points to {target}, which is not there"
            elif parts.fragment and target in page.links:
                named = pages[goal].ids if goal in pages else {unquote(parts.fragment)}
                if unquote(parts.fragment) not in named:
                    yield f"{where} points to {target}, which has no such part"


def index_of(site: Path) -> dict:
    """The search index that Sphinx wrote."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))


def ranked(index: dict, query: str) -> list[str]:
    """The pages in the order of Sphinx's search (its searchtools.js), without names of objects:

    a title that contains the query scores 15 len(query) / len(title), one more for that of a page;
    an entry of the index scores 100 len(query) / len(entry); a page that has all words scores 15 if
    one of them is in a title, else 5. Names of objects score 26 at most.
    """
    from sphinx.search.en import SearchEnglish

    stemmer = SearchEnglish({})
    found: list[tuple[float, str, str]] = []

    def add(score: float, page: int) -> None:
        found.append((score, index["titles"][page].lower(), index["docnames"][page]))

    for title, places in index["alltitles"].items():
        if query in title.lower() and len(query) >= len(title) / 2:
            for page, _ in places:
                of_page = index["titles"][page] == title
                add(round(15 * len(query) / len(title)) + of_page, page)
    for entry, places in index["indexentries"].items():
        if query in entry and len(query) >= len(entry) / 2:
            for page, _, main in places:
                add(round(100 * len(query) / len(entry)) if main else -1, page)
    words = [stemmer.stem(word) for word in re.findall(r"\w+", query)]
    words = [word for word in words if word not in stemmer.stopwords]

    def pages(word: str, kind: str) -> set[int]:
        at = index[kind].get(word, [])
        return {at} if isinstance(at, int) else set(at)

    texts = [pages(word, "terms") | pages(word, "titleterms") for word in words]
    for page in set.intersection(*texts) if texts else ():
        in_title = any(page in pages(word, "titleterms") for word in words)
        add(15 if in_title else 5, page)
    ordered = sorted(found, key=lambda one: (-one[0], one[1]))
    return list(dict.fromkeys(page for _, _, page in ordered))


def search_faults(site: Path) -> Iterator[str]:
    """Searches that lead elsewhere first."""
    index = index_of(site)
    for query, wanted in SEARCHES.items():
        first = ranked(index, query)[:3]
        if first[:1] != [wanted]:
            yield f"the search for {query!r} leads to {', '.join(first)} and not to {wanted}"


def seen_searches(site: Path, tab: "Tab") -> Iterator[str]:
    """The same in a browser, with the search of the site itself."""
    for query, wanted in SEARCHES.items():
        tab.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
        first = tab.wait_for_selector("ul.search li a", timeout=30_000)
        led = first.get_attribute("href") if first else None
        if led is None or led.partition("#")[0] != f"{wanted}.html":
            yield f"in the browser the search for {query!r} leads to {led} first"


def seen_faults(site: Path, browser: str) -> Iterator[str]:
    """What a browser sees on every page, in two widths."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=flags)
        for width in (DESK, PHONE):
            tab = chromium.new_page(viewport={"width": width, "height": 900})
            left: list[str] = []
            tab.on("request", lambda one, left=left: left.append(one.url))
            count = {"tables": 0, "wide": 0, "formulas": 0}
            for path in built(site):
                tab.goto(path.as_uri())
                tab.wait_for_function(
                    "!window.MathJax || !MathJax.startup || MathJax.startup.promise"
                )
                found = tab.evaluate(MEASURE)
                count = {name: count[name] + found[name] for name in count}
                where = f"{path.relative_to(site)} at {width}"
                if found["wide"] and width == DESK:
                    yield f"{where}: {found['wide']} tables are wider than their column"
                if found["cut"] and width == DESK:
                    yield f"{where}: {found['cut']} formulas are wider than their column"
                if found["sideways"]:
                    yield f"{where} scrolls sideways"
                if found["wrong"] or found["raw"]:
                    yield f"{where}: {found['wrong']} formulas in error, {found['raw']} not drawn"
                if found["empty"]:
                    yield f"{where}: {found['empty']} pictures are not shown"
                if found["beyond"]:
                    yield f"{where} is cut off at the right: {found['beyond'][0]}"
            away = {url for url in left if not url.startswith(("file:", "data:", "blob:"))}
            yield from (f"at {width} something asked for {url}" for url in sorted(away))
            if width == DESK and (site / "search.html").exists():
                yield from seen_searches(site, tab)
            sys.stdout.write(f"{width} wide: {count}\n")
        chromium.close()


def main(words: list[str]) -> int:
    """Print the faults; the exit code says whether there are any."""
    site = Path(words[0]).resolve()
    found = [*faults(site), *search_faults(site)]
    if "--browser" in words:
        found += seen_faults(site, words[words.index("--browser") + 1])
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
