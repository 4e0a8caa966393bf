"""--gate: a command that exits 0 within, 1 above and 3 not shown, as `evenhand.evaluation.gate`
says.
"""

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import Function, OutputFile
from evenhand.cli.show import console, show_lines
from evenhand.errors import InvalidInput
from evenhand.media.card import summary
from evenhand.tables import read_description

if TYPE_CHECKING:
    from evenhand.evaluation.gates import Gated, GateLedger, Look
    from evenhand.result import Verdict

WRITING = frozenset(
    [
        "gate",
        "gate_ledger",
        "commit",
        "summary",
        "page",
        "json_printed",
        "json_file",
        "figure",
        "out",
        "printed_as_json",
        "saved",
        "converted",
    ]
)
"""Parameters that say where an answer goes; the others say what is asked."""
STYLES = {"within": "green", "above": "bold red", "not shown": "yellow"}


@dataclass(frozen=True)
class Gating:
    """What the user asks of a gate."""

    asked: bool = False
    ledger: Path | None = None
    commit: str = ""
    summary: Path | None = None

    def open(self, delta: float, *evidence: str | Path) -> "OpenGate":
        """The gate of one call: it books its share of delta before anything is measured.

        evidence: the files that are looked at; with what is asked of them they are the look's
        identity.
        """
        from evenhand.evaluation.gates import GateLedger

        if self.ledger is None:
            return OpenGate(self, delta)
        seen = hashlib.sha256()
        for one in evidence:
            path = Path(one)
            content = path.read_bytes() if path.is_file() else str(one).encode()
            seen.update(hashlib.sha256(content).digest())
            if path.suffix.lower() == ".toml" and path.is_file():
                # The same description of other rows is another look.
                seen.update(hashlib.sha256(read_description(path).path.read_bytes()).digest())
        seen.update(question(map(str, evidence)).encode())
        ledger, look = GateLedger.read(self.ledger, delta).look(self.commit, seen.digest())
        ledger.write(self.ledger)
        return OpenGate(self, look.share, ledger, look)


def question(files: Iterable[str]) -> str:
    """What the command asks of its files: all settings, and not how the answer is written down.

    The same question about the same content is the same look, under whatever name, in whatever
    commit, and with whatever report.
    """
    context = click.get_current_context()
    names = set(files)
    asked = {
        name: str(value)
        for name, value in context.params.items()
        if name not in WRITING and str(value) not in names
    }
    return json.dumps([context.info_name, asked], sort_keys=True)


@dataclass(frozen=True)
class OpenGate:
    """A gate whose share of delta is booked."""

    gating: Gating
    delta: float
    """The probability with which this look may be wrong."""
    ledger: "GateLedger | None" = None
    look: "Look | None" = None

    def judge(
        self, record: "Gated", limit: float | None, least_ratio: float | None = None
    ) -> "Verdict | None":
        """The verdict; None if no gate was asked for."""
        from evenhand.evaluation.gates import gate

        if not self.gating.asked:
            return None
        if limit is None and least_ratio is None:
            raise InvalidInput(
                "--gate needs something to compare with.",
                hint="add --limit 0.05, or --least-ratio 0.8.",
                argument="limit",
            )
        result = gate(record, limit, least_ratio)
        if self.gating.summary is not None:
            self.gating.summary.write_text(summary(result), encoding="utf-8")
        if self.ledger is not None and self.look is not None and self.gating.ledger is not None:
            self.ledger.judged(self.look, result.status).write(self.gating.ledger)
        return result


def leave(result: "Verdict | None", *, quiet: bool) -> None:
    """Say the verdict (unless a document says it) and end the command with its exit code."""
    if result is None:
        return
    if not quiet:
        show_lines(console(), ["", result.headline], style=STYLES[result.status])
    click.get_current_context().exit(result.exit_code)


def gate_options(command: Function) -> Function:
    """--gate and what belongs to it. Hands on `gating`: Gating."""

    @click.option(
        "--gate",
        is_flag=True,
        help="Exit 0 if all is shown to be within what is allowed, 1 if something is shown to be "
        "above, 3 if neither is shown (2 is an error in the input).",
    )
    @click.option(
        "--gate-ledger",
        metavar="FILE.JSON",
        type=OutputFile(".json"),
        help="Account of delta over all looks: a false red has probability at most delta over all "
        "of them, each look gets its share. Keep the file in the repository.",
    )
    @click.option(
        "--commit", metavar="TEXT", default="", help="What the ledger calls this look: a commit."
    )
    @click.option(
        "--summary",
        metavar="FILE.MD",
        type=OutputFile(".md"),
        help="Write the verdict of --gate as Markdown.",
    )
    @functools.wraps(command)
    def with_gate(
        *args: Any,
        gate: bool,
        gate_ledger: Path | None,
        commit: str,
        summary: Path | None,
        **options: Any,
    ) -> None:
        if not gate and (gate_ledger is not None or summary is not None):
            raise click.UsageError("--gate-ledger and --summary belong to --gate: add it.")
        command(*args, gating=Gating(gate, gate_ledger, commit, summary), **options)

    return with_gate
