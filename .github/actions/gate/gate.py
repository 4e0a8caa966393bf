"""One evenhand command as a gate of a build: verdict, summary, and the account of delta.

The account is a file on a branch of its own, so that all builds of all branches share it. A build
fetches it, books its look, measures, and pushes. If another build has pushed in between, the push
is turned down: then nothing has been shown to anybody yet, and the build looks again with the next
share. So every share is spent once.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ATTEMPTS = 20
NOT_SHOWN = 3
STATUSES = {0: "within", 1: "above", NOT_SHOWN: "not shown"}
AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "evenhand gate"), ("EMAIL", "gate@evenhand.invalid"))
}


def git(*words: str, stdin: str | None = None) -> str:
    """What a git command prints."""
    done = subprocess.run(
        ["git", *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **AUTHOR},
    )
    return done.stdout.strip()


def fetched(branch: str) -> str | None:
    """The newest commit of the branch; None if there is no such branch."""
    if not git("ls-remote", "origin", f"refs/heads/{branch}"):
        return None
    git("fetch", "--quiet", "--depth=1", "origin", f"refs/heads/{branch}")
    return git("rev-parse", "FETCH_HEAD")


def pushed(branch: str, parent: str | None, name: str, ledger: Path) -> bool:
    """Whether the account is now the newest commit of the branch."""
    others = git("ls-tree", parent).splitlines() if parent else []
    blob = git("hash-object", "-w", str(ledger))
    entries = [line for line in others if line.partition("\t")[2] != name]
    tree = git("mktree", stdin="\n".join([*entries, f"100644 blob {blob}\t{name}", ""]))
    if parent and git("rev-parse", f"{parent}^{{tree}}") == tree:
        return True
    above = ["-p", parent] if parent else []
    commit = git("commit-tree", tree, *above, "-m", f"Book a look in {name}")
    # Without force: the push is turned down if another build was faster.
    try:
        git("push", "--quiet", "origin", f"{commit}:refs/heads/{branch}")
    except subprocess.CalledProcessError as error:
        turned_down = ("rejected", "fetch first", "failed to update ref", "cannot lock ref")
        if any(words in error.stderr for words in turned_down):
            return False
        raise
    return True


def looked(words: list[str], environ: Mapping[str, str], folder: Path) -> tuple[int, str]:
    """The exit code and the output of the command; the account is in the folder."""
    command = [sys.executable, "-m", "evenhand", *words, "--gate"]
    command += ["--summary", str(folder / "summary.md")]
    if environ.get("GATE_LEDGER_BRANCH"):
        command += ["--gate-ledger", str(folder / "ledger.json")]
        command += ["--commit", environ.get("GITHUB_SHA", "")]
    if environ.get("GATE_REPORT"):
        command += ["--out", environ["GATE_REPORT"]]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def main(environ: Mapping[str, str]) -> int:
    """Run the gate, and return what the build exits with."""
    words = shlex.split(environ["GATE_COMMAND"])
    branch = environ.get("GATE_LEDGER_BRANCH", "")
    name = environ.get("GATE_LEDGER") or "gate.json"
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ledger = folder / "ledger.json"
        for _ in range(ATTEMPTS):
            ledger.unlink(missing_ok=True)
            parent = fetched(branch) if branch else None
            if parent and name in git("ls-tree", "--name-only", parent).splitlines():
                ledger.write_text(git("show", f"{parent}:{name}") + "\n", encoding="utf-8")
            code, output = looked(words, environ, folder)
            if not branch or not ledger.exists() or pushed(branch, parent, name, ledger):
                break
        else:
            sys.stdout.write(f"other builds were faster {ATTEMPTS} times; run this one again.\n")
            return 2
        sys.stdout.write(output)
        summary = folder / "summary.md"
        if summary.exists() and environ.get("GITHUB_STEP_SUMMARY"):
            with open(environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as page:
                page.write(summary.read_text(encoding="utf-8") + "\n")
    status = STATUSES.get(code, "error")
    if environ.get("GITHUB_OUTPUT"):
        with open(environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as outputs:
            outputs.write(f"status={status}\n")
    if code == NOT_SHOWN and environ.get("GATE_NOT_SHOWN") == "pass":
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main(os.environ))
