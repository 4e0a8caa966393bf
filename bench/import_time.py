"""What does `import evenhand` cost beyond `import numpy`?"""

import subprocess
import sys

from bench.record import Record, median
from bench.tables import Tables


def import_time(_tables: Tables, quick: bool) -> list[Record]:
    """CPU seconds in fresh interpreters, in turns."""
    extra = []
    for _ in range(1 if quick else 9):
        base = _import_cpu("numpy")
        extra.append(_import_cpu("evenhand") - base)
    middle = median(extra)
    return [
        Record(
            "import evenhand, beyond numpy",
            "< 0.5 s CPU",
            f"{middle:.3f} s",
            middle < 0.5,
            tuple(extra),
            "seconds, not ratios",
        )
    ]


def _import_cpu(module: str) -> float:
    code = "import time; start = time.process_time()\n"
    code += f"import {module}\nprint(time.process_time() - start)"
    return float(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )
