"""Lives of two versions of evenhand on the same seeds: the one of this tree, and the one before the
bound was replaced.

The old one is the package at commit 63cdb27 (learners, simulator and what they need), kept in
tests/fixtures/rules2/evenhand.tar.xz for this comparison alone. Each version runs in a process of
its own:

    python versions.py < {"population": seed, "rounds": T, "limit": gamma', "seeds": [...]}
                       > [[regret, worst gap, seconds], ...]
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

OLD = Path(__file__).parents[1] / "fixtures" / "rules2" / "evenhand.tar.xz"
NEW = Path(__file__).parents[2] / "src"


def unpacked(folder: Path) -> Path:
    """Where the old version can be imported from."""
    with tarfile.open(OLD) as archive:
        archive.extractall(folder, filter="data")
    return folder


def lives(source: Path, **asked) -> np.ndarray:
    """(seeds, 3): regret, worst true gap and CPU seconds of each life, played by the version at
    `source`.
    """
    here = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    one = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve())]
    done = subprocess.run(
        command,
        input=json.dumps(asked),
        env=here | one,
        capture_output=True,
        text=True,
        check=False,
        cwd=source,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert Path(answer["from"]).is_relative_to(source)
    return np.array(answer["lives"])


def main() -> None:
    """Play what is asked for on the standard input."""
    from time import process_time

    import evenhand
    from evenhand.environments import random_population

    asked, found = json.load(sys.stdin), []
    world = random_population(asked["population"])
    for seed in asked["seeds"]:
        learner = evenhand.CertifiedLearner(
            world.hypotheses,
            evenhand.FalsePositiveRate(),
            asked["limit"],
            0.05,
            horizon=asked.get("horizon"),
            seed=seed,
        )
        start = process_time()
        run = evenhand.simulate(learner, world, asked["rounds"], seed, asked["limit"])
        found.append([float(run.regret[-1]), run.worst_gap, process_time() - start])
    json.dump({"from": evenhand.__file__, "lives": found}, sys.stdout)


if __name__ == "__main__":
    main()
