"""A ledger of a million decisions: its draws recomputed by the stand-alone verifier, its chain
verified, its service restarted.
"""

import http.client
import json
import subprocess
import sys
import time
from pathlib import Path

from service.tests.ports import free_port
from service.tests.torture.serving import Process, application, folder
from service.tests.torture.speed import processor

from evenhand_service import load_settings
from evenhand_service.ledger import Application, Terms, export, verify
from evenhand_service.ledger import standalone_verifier as verifier
from evenhand_service.opening import open_ledger

DAY, BATCH = 86400.0, 2000


def fill(place, number, clock):
    """A service's folder whose ledger holds `number` decisions about as many people; (seconds, the
    window's secret).
    """
    process = Process(place)
    with process.running():
        pass
    now = [clock() - 40 * DAY]
    with open_ledger(load_settings(place / "service.toml"), lambda: now[0]) as ledger:
        now[0] = max(now[0], ledger.head().at)
        policy = ledger.policies("loan")[-1].id
        cursor = (
            ledger.store.writer.raw_connection().cursor()
        )  # what is written is tried here, and not how durably
        for pragma in ("synchronous=OFF", "cache_size=-1000000", "wal_autocheckpoint=200000"):
            cursor.execute(f"PRAGMA {pragma}")
        began = time.perf_counter()
        for start in range(0, number, BATCH):
            people = range(start, min(start + BATCH, number))
            ledger.decide_many(
                [
                    (
                        Application(f"m{i}", f"m{i}", "loan", (0.5,), "a"),
                        Terms(policy, 0.5, 0.1, 2),
                    )
                    for i in people
                ]
            )
        return time.perf_counter() - began


def recomputed(quick, place):
    """The secret of the window is revealed after its end; the verifier runs without site packages,
    isolated.
    """
    ends = []
    with open_ledger(
        load_settings(place / "service.toml"), lambda: ends[0] if ends else time.time()
    ) as ledger:
        window = ledger.windows()[-1]
        ends.append(window.ends + 1)
        secret = ledger.reveal(window.name, "auditor")
        rows = export(ledger, place / "export.jsonl", opened=("who",))
        decisions = ledger.counts("loan").decisions
    (place / "secrets.json").write_text(json.dumps({window.name: secret.hex()}))
    words = [
        sys.executable,
        "-I",
        "-S",
        verifier.__file__,
        place / "export.jsonl",
        "--secrets",
        place / "secrets.json",
    ]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    distance = float(done.stdout.split("sqrt(n) D = ")[1].split()[0])
    (place / "export.jsonl").unlink()
    all_of_them = f"draws recomputed: {decisions:,} of {decisions:,}" in done.stdout
    figure = (
        f"{decisions:,} draws of {rows:,} rows: {'all' if all_of_them else 'NOT ALL'} recomputed, "
        f"sqrt(n) D = {distance:.3f} (< 1.95)"
    )
    return (
        "100% recomputed from the revealed secret, uniform by Kolmogorov-Smirnov",
        figure,
        (done.returncode == 0 and all_of_them and distance < 1.95),
    )


def draws(quick):
    """(row, the folder for the rows that follow)."""
    place = folder()
    seconds = fill(place, 2000 if quick else 1_000_000, time.time)
    target, figure, held = recomputed(quick, place)
    return (target, f"{figure}; written in {seconds:.0f} s", held), place


def verified(place):
    with open_ledger(load_settings(Path(place) / "service.toml"), time.time) as ledger:
        began, wall = time.process_time(), time.perf_counter()
        found = verify(ledger, ledger.signed_head())
        seconds, wall = time.process_time() - began, time.perf_counter() - wall
    each = seconds / found.rows * 1e6
    figure = (
        f"{each:.1f} s per 1e6 rows ({found.rows:,} rows: {seconds:.1f} s of this process, "
        f"{wall:.1f} s in all)"
    )
    return "<= 20 s per 1e6 rows", figure, found.ok and each <= 20


def _first(process, began):
    """Ask until somebody answers; (status, seconds since `began`)."""
    key = f"after-{time.time_ns()}"
    headers = {"Authorization": f"Bearer {process.token}", "Content-Type": "application/json"}
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", process.port)
        try:
            connection.request("POST", "/v1/decisions", json.dumps(application(key)), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, time.perf_counter() - began
        except OSError:
            time.sleep(0.005)
        finally:
            connection.close()


def restarted(place):
    """After a kill -9, from the exec of the command to the first durable answer, imports included;
    also the processor time of it, which does not depend on what else the machine does.
    """
    seconds, used = [], []
    for _ in range(5):
        process = Process(Path(place))
        process.port = free_port()
        words = [
            "-m",
            "evenhand",
            "serve",
            "--no-train",
            "--config",
            process.folder / "service.toml",
        ]
        words += ["--port", process.port]
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as served:
            process.pid = served.pid
            status, taken = _first(process, began)
            used.append(processor(process))
            served.kill()
        assert status == 200
        seconds.append(taken)
    figure = (
        f"{min(seconds):.2f} s from exec to the first durable answer (worst of 5: "
        f"{max(seconds):.2f} s), {min(used):.2f} s of processor"
    )
    return "<= 2.5 s", figure, min(seconds) <= 2.5


def restart_and_verify(quick, place):
    one, other = restarted(place), verified(place)
    return f"restart {one[0]}; full verify {other[0]}", f"{one[1]}; {other[1]}", one[2] and other[2]


# what looking costs


def _looked(place, idle):
    """(CPU milliseconds of a dashboard, of /metrics, and percent of a core while nothing happens)
    of a service on a folder; what it counts first is not counted here.
    """
    with Process(Path(place)).running() as process:
        connection = http.client.HTTPConnection("127.0.0.1", process.port)
        connection.request("POST", "/dashboard/login", f"key={process.token}")
        answer = connection.getresponse()
        answer.read()
        cookie = {"Cookie": answer.headers["set-cookie"].split(";")[0]}
        key = {"Authorization": f"Bearer {process.token}"}

        def get(path, headers):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (path, answer.status, body[:300])

        costs = []
        settled(process)
        connection.close()  # the service has closed it meanwhile; the next request opens another
        for path, headers in (("/dashboard", cookie), ("/metrics", key)):
            get(path, headers)
            before = processor(process)
            for _ in range(20):
                get(path, headers)
            costs.append(1000 * (processor(process) - before) / 20)
        before, began = processor(process), time.monotonic()
        time.sleep(idle)
        return *costs, 100 * (processor(process) - before) / (time.monotonic() - began)


def settled(process):
    """Wait until the background has counted everybody: for five seconds it uses next to nothing,
    also on a busy machine, where it gets little.
    """
    quiet = 0
    while quiet < 5:
        before = processor(process)
        time.sleep(1.0)
        quiet = quiet + 1 if processor(process) - before < 0.03 else 0


def looking(quick, place):
    """A ledger of 10,000 beside the large one."""
    small = folder()
    fill(small, 500 if quick else 10_000, time.time)
    idle = 2 if quick else 20
    (page, text, _), (large_page, large_text, core) = _looked(small, 0), _looked(place, idle)
    figure = (
        f"dashboard {large_page / page:.1f} times ({large_page:.0f} and {page:.0f} ms of "
        f"processor), /metrics {large_text / text:.1f} times ({large_text:.0f} and {text:.0f} ms); "
        f"idle {core:.1f}% of a core"
    )
    held = large_page <= 3 * page and large_text <= 3 * text and core < 1
    return (
        "dashboard and /metrics <= 3 times their cost at 1e4 rows; idle < 1% of a core",
        figure,
        held,
    )
