"""Run the steps of the Dockerfile without Docker, then the service as the image would run it.

The build stage's RUN line is executed on a copy of what the image copies, with /opt/evenhand moved
into a folder of its own. The result belongs to root and cannot be written; the service then runs
from it as user 10001, without a home, with a fresh /service and nothing else that it may write. It
must check its settings, answer, train, and stop on SIGTERM. What is not run: the base image, Docker
itself, its network and its read-only mounts.

    sudo .venv/bin/python scripts/run_image.py          # needs root, to become another user
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USER = 10001
SETTINGS = """
[service]
port = {port}
train_every = 0.2
[[product]]
name = "loan"
features = ["score"]
limit = 0.2
"""


def steps() -> tuple[list[str], str, list[str], list[str]]:
    """(what is copied, the build's RUN line, ENTRYPOINT, CMD), read from the Dockerfile."""
    text = (ROOT / "service/Dockerfile").read_text().replace("\\\n", " ")
    build = text.split("FROM ")[1]
    copied = [
        name for line in re.findall(r"^COPY (.*)$", build, re.M) for name in line.split()[:-1]
    ]
    run = re.findall(r"^RUN (.*)$", build, re.M)[0]
    entry, command = (
        json.loads(re.findall(rf"^{word} (\[.*\])$", text, re.M)[-1])
        for word in ("ENTRYPOINT", "CMD")
    )
    return copied, run, entry, command


def build(place: Path, copied: list[str], run: str) -> Path:
    """The folder that the image has at /opt/evenhand."""
    source, made = place / "src", place / "opt"
    source.mkdir()
    for name in copied:
        there = ROOT / name
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if there.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(there, source / name, ignore=ignored)
        else:
            shutil.copy(there, source / name)
    command = run.replace("/opt/evenhand", str(made)).replace("python -m", f"{sys.executable} -m")
    command = command.replace("pip install", "pip install -qq")
    subprocess.run(command, shell=True, cwd=source, check=True)
    shutil.rmtree(source)
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(made)], check=True)
    return made


def call(url: str, body: dict[str, object] | None = None, key: str = "") -> dict[str, object]:
    """One request, decoded."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    """Build, run, ask, stop."""
    if os.geteuid() != 0:
        sys.exit("this runs the service as another user. Hint: run it as root.")
    copied, run, entry, command = steps()
    with tempfile.TemporaryDirectory(prefix="evenhand-image-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        print(f"build: {run}", flush=True)
        made = build(place, copied, run)
        service = place / "service"
        service.mkdir(mode=0o700)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (service / "service.toml").write_text(SETTINGS.format(port=port))
        for path in (service, service / "service.toml"):
            os.chown(path, USER, USER)
        words = [word.replace("/service/", f"{service}/", 1) for word in (*entry, *command)]
        words[0] = str(made / "bin" / words[0])
        words[words.index("0.0.0.0")] = "127.0.0.1"  # nothing of a test listens elsewhere
        environment = {
            "PATH": f"{made / 'bin'}:/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }
        # the interpreter may lie in root's home: the user may read everything, and write nothing
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        become += ["--bounding-set=-all,+dac_read_search", "--no-new-privs"]
        as_user = dict(env=environment, cwd=service, text=True)
        print(f"check: {shlex.join([*words, '--check'])}", flush=True)
        subprocess.run([*become, *words, "--check"], check=True, **as_user)
        print(f"run:   {shlex.join(words)}", flush=True)
        with subprocess.Popen([*become, *words], stdout=subprocess.PIPE, **as_user) as running:
            try:
                ask(running, f"http://127.0.0.1:{port}")
            finally:
                running.send_signal(signal.SIGTERM)
                running.wait(30)
    if running.returncode not in (0, -signal.SIGTERM):
        sys.exit(f"the service ended with {running.returncode}")
    print("1 passed, 0 failed")


def ask(running: "subprocess.Popen[str]", url: str) -> None:
    """A decision, a training and a readiness check, over HTTP."""
    assert running.stdout is not None
    key = ""
    for line in running.stdout:
        if line.startswith("First key"):
            key = Path(line.rpartition(" in the file ")[2].strip()).read_text().strip()
        if line.startswith("Stop with"):
            break
    deadline = time.monotonic() + 60
    while True:
        try:
            call(f"{url}/health/live")
            break
        except OSError:
            if time.monotonic() > deadline or running.poll() is not None:
                sys.exit("the service does not answer")
            time.sleep(0.1)
    for number in range(50):
        application = {
            "key": f"k{number}",
            "person": f"p{number}",
            "product": "loan",
            "features": [float(number)],
            "group": "ab"[number % 2],
        }
        answer = call(f"{url}/v1/decisions", application, key)
        assert answer["accept"] is True, answer
        call(f"{url}/v1/outcomes", {"key": f"k{number}", "label": 1 if number > 20 else -1}, key)
    print("train: ", call(f"{url}/v1/train", {"product": "loan", "by": "image"}, key), flush=True)
    print("ready: ", call(f"{url}/health/ready"), flush=True)


if __name__ == "__main__":
    main()
