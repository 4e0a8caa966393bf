"""Measure how easy the package is to read: the sizes of its folders, and three walks through it.

    python scripts/house.py                 sizes, then walks
    python scripts/house.py sizes           files, lines and functions of each folder
    python scripts/house.py walks --json    what a reader opens to follow three calls, as JSON

A walk follows one call from beginning to end, in the order in which somebody reads the code: every
function is read once, when it is first called. A *switch* is a change from one file to another on
the way. Few switches and few files mean that a newcomer can follow. The figures are there to be
looked at: a file that holds five ideas has no switches and is worse.
"""

import argparse
import ast
import asyncio
import io
import json
import statistics
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "evenhand"
LONG_FUNCTION, MANY_PARAMETERS, LONG_LINE = 40, 6, 100
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


# sizes


@dataclass
class Folder:
    """The sizes of one folder.

    code : lines without docstrings, comments and blank lines.
    private : functions whose name starts with one underscore; called_once : those of them that
    their file names in one place only.
    """

    files: int = 0
    lines: int = 0
    code: int = 0
    private: int = 0
    called_once: int = 0
    function_lengths: list[int] = field(default_factory=list)

    def add(self, other: "Folder") -> None:
        """Count the files of another folder as well."""
        for name in ("files", "lines", "code", "private", "called_once", "function_lengths"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Sizes:
    """The sizes of every folder, and the places that are larger than they should be.

    repeated_classes : class names with more than one definition, and how many they have.
    long_functions, many_parameters, long_lines : "file:name" or "file:line", with the size.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    repeated_classes: dict[str, int] = field(default_factory=dict)
    long_functions: dict[str, int] = field(default_factory=dict)
    many_parameters: dict[str, int] = field(default_factory=dict)
    long_lines: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> Folder:
        """All folders together."""
        total = Folder()
        for folder in self.folders.values():
            total.add(folder)
        return total


def sizes(package: Path = PACKAGE) -> Sizes:
    """Measure every Python file below `package`.

    Returns
    -------
    Sizes
        One entry per folder; the files directly in the package count as the folder "(top)".
    """
    measured, classes = Sizes(), Counter[str]()
    for path in sorted(package.rglob("*.py")):
        text, place = path.read_text(encoding="utf-8"), path.relative_to(package)
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        functions = [node for node in nodes if isinstance(node, Function)]
        named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        named += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
        private = [f.name for f in functions if f.name[0] == "_" and not f.name.startswith("__")]
        name = "/".join(place.parts[:-1]) or "(top)"
        folder = measured.folders.setdefault(name, Folder())
        folder.add(
            Folder(
                files=1,
                lines=text.count("\n"),
                code=_lines_of_code(text, nodes),
                private=len(private),
                called_once=sum(named[name] == 1 for name in private),
                function_lengths=[_last_line(f) - f.lineno + 1 for f in functions],
            )
        )
        classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
        for function in functions:
            where, length = f"{place.as_posix()}:{function.name}", _length(function)
            if length > LONG_FUNCTION:
                measured.long_functions[where] = length
            if (parameters := _parameters(function)) > MANY_PARAMETERS:
                measured.many_parameters[where] = parameters
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > LONG_LINE:
                measured.long_lines[f"{place.as_posix()}:{number}"] = len(line)
    measured.repeated_classes = {name: count for name, count in classes.items() if count > 1}
    return measured


def _lines_of_code(text: str, nodes: list[ast.AST]) -> int:
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        if isinstance(node, ast.Expr) and _is_text(node):
            code.difference_update(range(node.lineno, _last_line(node) + 1))
    return len(code)


def _is_text(node: Any) -> bool:
    """Whether a statement is a string alone: a docstring, or the text below a constant."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return alone and isinstance(node.value.value, str)


def _length(function: Function) -> int:
    """The lines of a function without its docstring."""
    first = function.body[0]
    docstring = _last_line(first) - first.lineno + 1 if _is_text(first) else 0
    return _last_line(function) - function.lineno + 1 - docstring


def _last_line(node: Any) -> int:
    return int(node.end_lineno or node.lineno)


def _parameters(function: Function) -> int:
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return len([one for one in arguments if one.arg not in ("self", "cls")])


# walks


@dataclass
class Walk:
    """What a reader opens to follow one call.

    steps : the file of each function in the order of reading; the same file in a row counts once.
    functions : how many functions are read.
    """

    steps: list[str] = field(default_factory=list)
    functions: int = 0

    @property
    def files(self) -> list[str]:
        """Every file once, in the order in which it is first opened."""
        return list(dict.fromkeys(self.steps))

    @property
    def switches(self) -> int:
        """How often the reader goes from one file to another."""
        return max(len(self.steps) - 1, 0)

    @property
    def folder_switches(self) -> int:
        """How often the reader goes from one folder to another."""
        folders = [step.split("/")[0] for step in self.steps]
        return sum(one != two for one, two in pairwise(folders))

    def to_json(self) -> dict[str, Any]:
        """The figures and the files, as plain values."""
        names = ("functions", "switches", "folder_switches", "files")
        return {name: getattr(self, name) for name in names}


class Follower:
    """Notes which functions of the package are called while a walk is on, in all threads."""

    def __init__(self, package: Path) -> None:
        self.root = f"{package}/"
        self.walks: dict[str, Walk] = {}
        self._walk: Walk | None = None
        self._seen: set[tuple[str, int]] = set()

    @contextmanager
    def walk(self, name: str) -> Iterator[None]:
        """Follow what is called inside the block, under this name."""
        self.walks[name], self._seen = Walk(), set()
        self._walk = self.walks[name]
        try:
            yield
        finally:
            self._walk = None

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """The hook for `sys.setprofile`: called by the interpreter at every call."""
        walk, code = self._walk, frame.f_code
        if walk is None or event != "call" or not code.co_filename.startswith(self.root):
            return
        key = (code.co_filename, code.co_firstlineno)
        if code.co_name.startswith("<") or key in self._seen:  # modules, lambdas, comprehensions
            return
        self._seen.add(key)
        walk.functions += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self.root):
            caller = caller.f_back
        frames = [frame] if caller is None else [caller, frame]
        for file in (one.f_code.co_filename.removeprefix(self.root) for one in frames):
            if not walk.steps or walk.steps[-1] != file:
                walk.steps.append(file)


def walks(package: Path = PACKAGE) -> dict[str, Walk]:
    """Follow three calls: an epoch that closes, `evenhand solve`, and POST of a decision.

    The calls are followed by a profiler that replaces any other one; run this in a process of its
    own. What a call does only the first time in a process (caches, lazy imports) belongs to its
    walk.

    Returns
    -------
    dict of str to Walk
        The walks "closing an epoch", "evenhand solve" and "POST a decision".
    """
    follower = Follower(package)
    sys.setprofile(follower.profile)
    threading.setprofile(follower.profile)
    try:
        _close_an_epoch(follower)
        with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
            _solve(follower, package / "data" / "lending.csv")
            asyncio.run(_post_a_decision(follower, Path(folder)))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return follower.walks


def _close_an_epoch(follower: Follower) -> None:
    import numpy as np

    import evenhand as eh

    draw = np.random.default_rng(7)
    learner = eh.CertifiedLearner(
        eh.ScoreThresholds(),
        eh.FalsePositiveRate(),
        allowed_gap=0.1,
        failure_probability=0.05,
        seed=1,
    )

    def people(rows: int) -> tuple[Any, Any, Any]:
        group = draw.choice(["a", "b"], size=rows)
        score = draw.normal(600 + 15 * (group == "a"), 50)
        return score[:, None], group, np.where(score + draw.normal(0, 40, size=rows) > 600, 1, -1)

    # a learner with some epochs behind it, one person before the end of the next
    rounds = [500] * 12
    while rounds or learner.rounds_left > 1:
        features, group, label = people(rounds.pop() if rounds else learner.rounds_left - 1)
        decisions = learner.decide(features, group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.round[accepted], label[accepted])
    features, group, _ = people(1)
    learner.decide(features, group)
    features, group, _ = people(1)
    with follower.walk("closing an epoch"):
        learner.decide(features, group)


def _solve(follower: Follower, table: Path) -> None:
    from evenhand.cli import main

    words = ["solve", str(table), "--label", "repaid", "--good", "yes", "--group", "group"]
    with follower.walk("evenhand solve"):
        main(words, prog_name="evenhand", standalone_mode=False)


async def _post_a_decision(follower: Follower, folder: Path) -> None:
    import httpx2

    from evenhand.service import Product, Settings, create_app
    from evenhand.service.server import open_keys, open_ledger

    settings = Settings(
        products=(
            Product(
                "bank",
                "loan",
                ("score",),
                hypotheses="thresholds",
                limit=0.15,
                groups=("a", "b"),
                seed=7,
            ),
        ),
        ledger=str(folder / "ledger.sqlite"),
        keyring=str(folder / "keyring.json"),
        keys=str(folder / "keys.json"),
        allowed_hosts=("test",),
        train_every=3600.0,
    )
    people = [
        {"key": f"k{i}", "person": f"p{i}", "product": "loan", "features": [600.0], "group": "a"}
        for i in range(2)
    ]
    with open_ledger(settings, lambda: 1e9) as ledger:
        keys, tokens = open_keys(ledger, settings)
        app = create_app(ledger, settings, keys)
        async with (
            app.app.router.lifespan_context(app.app),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app),
                base_url="http://test",
                headers={"Authorization": f"Bearer {tokens['bank']}"},
            ) as client,
        ):
            await client.post("/v1/decisions", json=people[0])
            with follower.walk("POST a decision"):
                answer = await client.post("/v1/decisions", json=people[1])
            answer.raise_for_status()


# printing


def main(arguments: list[str] | None = None) -> None:
    """Print the sizes and the walks, or one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="*", default=["sizes", "walks"], metavar="sizes|walks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, str(PACKAGE.parent))
    measured = sizes() if "sizes" in asked.what else None
    followed = walks() if "walks" in asked.what else {}
    if asked.json:
        document: dict[str, Any] = {"sizes": None if measured is None else asdict(measured)}
        document["walks"] = {name: walk.to_json() for name, walk in followed.items()}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
        return
    lines = [] if measured is None else _size_lines(measured)
    for name, walk in followed.items():
        lines.append(
            f"\n{name}: {walk.functions} functions in {len(walk.files)} files, "
            f"{walk.switches} switches of file, {walk.folder_switches} of folder"
        )
        lines.append(f"  {' > '.join(walk.files)}")
    sys.stdout.write("\n".join(lines) + "\n")


def _size_lines(measured: Sizes) -> list[str]:
    lines = [f"{'folder':24}files  lines   code   functions: median, p90, max   private once"]
    for name, folder in [*sorted(measured.folders.items()), ("ALL", measured.whole)]:
        lengths = sorted(folder.function_lengths) or [0]
        ninth = lengths[int(0.9 * (len(lengths) - 1))]
        lines.append(
            f"{name:24}{folder.files:5}{folder.lines:7}{folder.code:7}{len(lengths):10}:"
            f"{statistics.median(lengths):8.0f}{ninth:5}{lengths[-1]:5}"
            f"{folder.called_once:9} of {folder.private}"
        )
    for title, places in (
        ("class names used more than once", measured.repeated_classes),
        (f"functions of more than {LONG_FUNCTION} lines", measured.long_functions),
        (f"functions of more than {MANY_PARAMETERS} parameters", measured.many_parameters),
        (f"lines of more than {LONG_LINE} characters", measured.long_lines),
    ):
        largest = sorted(places.items(), key=lambda place: -place[1])[:12]
        shown = ", ".join(f"{place} {size}" for place, size in largest)
        lines.append(f"{title}: {len(places)} {f'({shown})' if shown else ''}".rstrip())
    return lines


if __name__ == "__main__":
    main()
