"""Commands on a page: what a reader would type, run when the page is built."""

import os
import shlex
import subprocess
import sys
import tempfile

work = tempfile.mkdtemp()
"""The folder in which the commands run; one for each page, because each page is a process."""


def shell(command: str) -> None:
    """Run a command of evenhand and print what it prints; a failure ends the build."""
    words = [sys.executable, "-m", *shlex.split(command)]
    wide = {**os.environ, "COLUMNS": "92"}
    done = subprocess.run(words, cwd=work, env=wide, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stderr
