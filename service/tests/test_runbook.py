"""The pages of service/docs are two stories: `first-service.md` alone, and `production.md` with
`operating.md` after it. Their lines marked `$` are typed into one shell, in order, and what they
print is compared with the page. How long each heading took is printed (`pytest -s`).
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from service.tests.ledger import conftest as postgres
from service.tests.ports import free_port
from tests.tools import need

ROOT = Path(__file__).parents[1]
FIRST, PRODUCTION, RUNBOOK = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("first-service", "production", "operating")
)
MOST_COMMANDS = 110
"""Commands that an operator has to type through, on both pages of the second story."""
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
HEADINGS = {
    FIRST: ("Settings", "Start", "Decide", "Look", "Back up, verify, pack", "Stop, and restore"),
    PRODUCTION: (
        "The database",
        "Settings",
        "Two replicas",
        "The proxy",
        "The first certificate",
        "Backup",
    ),
    RUNBOOK: (
        "Watching",
        "Upgrade",
        "When something is wrong",
        "Rollback",
        "The certificate is suspended",
        "A key is lost",
        "The database is away or full",
        "A replica is paused",
        "The clock is wrong",
        "A product is changed",
        "The root key",
        "Restore",
        "An auditor's visit",
        "Stopping",
    ),
}
"""Each of them is a heading with at least one line that is run."""


class Said(NamedTuple):
    """What a step printed, how it ended, and the seconds that it took."""

    words: str
    code: int
    seconds: float


class Step(NamedTuple):
    """What is typed, under which heading, and what the page says that it prints."""

    heading: str
    typed: str
    shown: str

    @property
    def code(self) -> int:
        """A refusal ends with 2."""
        return 2 if re.search(r"^Error: ", self.shown, re.M) else 0


def steps(text):
    """The lines marked `$`, each with its continuation or its document, and what follows it."""
    found = []
    for block in BLOCK.finditer(text):
        heading = re.findall(r"^##+ (.*)", text[: block.start()], re.M)[-1]
        lines = iter(block[1].splitlines())
        for line in lines:
            if not line.startswith("$ "):
                heading, typed, shown = found.pop()
                found.append(Step(heading, typed, f"{shown}{line}\n"))
                continue
            typed = [line.removeprefix("$ ")]
            if "<< 'EOF'" in line:
                while typed[-1] != "EOF":
                    typed.append(next(lines))
            if line.endswith("{"):  # a function, up to its end
                while typed[-1] != "}":
                    typed.append(next(lines).removeprefix("> "))
            found.append(Step(heading, "\n".join(typed), ""))
    return found


def agrees(said, shown):
    """Whether what was said is what the page shows; `...` stands for anything, also for lines."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, said.strip(), re.S) is not None


def script(story):
    """One shell types everything, and stops at the first line that does not end as it should; what
    it started ends with it.
    """
    lines = ["trap 'kill -KILL $(jobs -pr) $(jobs -ps) 2> /dev/null' EXIT; began=$EPOCHREALTIME"]
    for number, step in enumerate(story):
        lines.append(step.typed)
        lines.append(
            f"code=$?; printf '\\n@@@ %s %s %s %s\\n' {number} $code $began $EPOCHREALTIME"
        )
        lines.append(f"[ $code = {step.code} ] || exit 3; began=$EPOCHREALTIME")
    return "\n".join(lines) + "\n"


def played(story, folder, ports):
    """What each step said, up to the one that failed."""
    commands = folder / "bin"
    commands.mkdir()
    for name, words in (("evenhand", "-m evenhand"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (commands / name).chmod(0o755)
    place = folder / "fresh"
    place.mkdir()
    text = with_ports(script(story), ports)
    (folder / "script").write_text(text)
    path = os.pathsep.join((str(commands), os.environ["PATH"], "/usr/sbin"))
    with (folder / "said").open("w") as said:
        subprocess.run(
            ["bash", str(folder / "script")],
            cwd=place,
            env={
                **os.environ,
                "PATH": path,
                "NO_PROXY": "127.0.0.1",
                "LC_ALL": "C.UTF-8",
                "CHECKOUT": str(ROOT.parent),
            },
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
    parts = re.split(r"\n@@@ \d+ (\d+) ([\d.]+) ([\d.]+)\n", (folder / "said").read_text())
    return [
        Said(words, int(code), float(end) - float(began))
        for words, code, began, end in zip(*(parts[i::4] for i in range(4)), strict=False)
    ]


def stopwatch(story, said):
    """The commands and the seconds of each heading, and the slowest command, as lines."""
    times = {}
    for step, one in zip(story, said, strict=False):
        times.setdefault(step.heading, []).append((one.seconds, step.typed.splitlines()[0]))
    lines = []
    for heading, each in times.items():
        seconds, slowest = max(each)
        total = sum(one for one, _ in each)
        lines.append(
            f"{heading}: {len(each)} commands, {total:.1f} s; {seconds:.1f} s {slowest[:60]}"
        )
    return lines


def with_ports(text, ports):
    """The text with the ports that are free here."""
    written = "|".join(ports)
    return re.sub(rf"\b({written})\b", lambda found: str(ports[found[1]]), text) if ports else text


@pytest.fixture
def server():
    """The port of a PostgreSQL that asks for passwords, with the role of the page and no more
    rights than the page gives it.
    """
    import psycopg

    need("postgresql", "psql", "curl", "openssl", "nginx")
    tools = postgres.tools()
    assert "createuser --createdb --createrole --pwprompt evenhand" in PRODUCTION
    password = re.search(r"^127\.0\.0\.1:5432:\*:evenhand:(.*)$", PRODUCTION, re.M)[1]
    home, port = Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp")), free_port()
    run, data = postgres._runner(home), home / "data"
    (home / "password").write_text("of the administrator")
    (home / "password").chmod(0o644)
    with postgres.ends_with_this_process(home, data):
        words = ("-U", "postgres", "-A", "scram-sha-256", f"--pwfile={home / 'password'}", "-N")
        run(tools / "initdb", "-D", data, *words)
        options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -p {port}"
        words = ("-w", "-t", "300", "-o", f"{options} -c fsync=off", "-l", home / "log", "start")
        run(tools / "pg_ctl", "-D", data, *words)
        administrator = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(administrator, password="of the administrator") as connection:
            connection.execute(
                f"CREATE ROLE evenhand LOGIN CREATEDB CREATEROLE PASSWORD '{password}'"
            )
        yield str(port)


def headings(text):
    return re.findall(r"^##+ (.*)", text, re.M)


@pytest.mark.parametrize("page", HEADINGS, ids=["first-service", "production", "operating"])
def test_every_heading_has_steps(page):
    run = {step.heading for step in steps(page)}
    wanted = HEADINGS[page]
    assert [name for name in wanted if name not in headings(page) or name not in run] == []


def test_there_is_not_more_to_learn_than_before():
    assert len(steps(FIRST)) <= 40
    assert len(steps(PRODUCTION) + steps(RUNBOOK)) <= MOST_COMMANDS


def test_the_alerts_name_headings_of_the_runbook():
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    named = re.findall(r'runbook: "service/docs/operating.md: (.*)"', alerts)
    known = tuple(heading.lower() for heading in headings(RUNBOOK))
    assert named
    assert [name for name in named if not any(one.startswith(name.lower()) for one in known)] == []


def test_what_is_compared_can_differ():
    function = "$ f() {\n>   no\n> }\n"
    text = f"# a\n## b\n```console\n$ cat << 'EOF'\n$ no\nEOF\n{function}$ x\ny ... z\n```\n"
    found = steps(text)
    assert [step.typed for step in found] == ["cat << 'EOF'\n$ no\nEOF", "f() {\n  no\n}", "x"]
    assert agrees("y 1 z", found[-1].shown)
    assert not agrees("y 1", found[-1].shown)
    assert not agrees("anything", "")


def test_a_step_that_fails_ends_the_story(tmp_path):
    story = [Step("a", "echo 1", "1\n"), Step("a", "false", ""), Step("a", "echo 2", "2\n")]
    said = played(story, tmp_path, {})
    assert [one[:2] for one in said] == [("1\n", 0), ("", 1)]
    assert all(one.seconds >= 0 for one in said)


def test_the_stopwatch_adds_up_what_stands_under_a_heading():
    story = [Step("a", "x", ""), Step("b", "y", ""), Step("a", "z\nmore", "")]
    said = [Said("", 0, 1.0), Said("", 0, 0.5), Said("", 0, 2.0)]
    assert stopwatch(story, said) == [
        "a: 2 commands, 3.0 s; 2.0 s z",
        "b: 1 commands, 0.5 s; 0.5 s y",
    ]


def require_told(story, folder, ports):
    """Every step ends and prints as the page shows."""
    said = played(story, folder, ports)
    print("\n".join(["", *stopwatch(story, said)]))
    wrong = [
        f"{step.heading}: {step.typed}\nsaid ({code}): {words[:2000]}\nshown: {step.shown}"
        for step, (words, code, _) in zip(story, said, strict=False)
        if code != step.code or not agrees(words, with_ports(step.shown, ports))
    ]
    assert not wrong, "\n\n".join(wrong)
    assert len(said) == len(story), story[len(said)]


@pytest.mark.slow
def test_a_first_service_works_as_it_is_written(tmp_path):
    require_told(steps(FIRST), tmp_path, {"8377": free_port()})


@pytest.mark.slow
def test_production_and_the_runbook_work_as_they_are_written(tmp_path, server):
    names = ("8377", "8378", "8379", "8443", "5432")
    ports = dict(zip(names, [*(free_port() for _ in range(4)), server], strict=True))
    require_told(steps(PRODUCTION) + steps(RUNBOOK), tmp_path, ports)
