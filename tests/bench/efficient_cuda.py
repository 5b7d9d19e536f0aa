"""Measure attention on this machine's GPU and store the result for lesson 14.

    python tests/bench/efficient_cuda.py            # writes data/efficient_cuda.json
    python tests/bench/efficient_cuda.py out.json   # or another file

The lesson shows the stored result, with its date and machine, to readers who have no GPU. Takes about a minute.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from helpers import efficient


def store(report, path):
    """Write ``report`` as JSON, whole or not at all."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def main(arguments):
    path = Path(arguments[0]) if arguments else efficient.CUDA_RESULT
    if not path.absolute().parent.is_dir():
        print(f"There is no folder for {path}; make it first, or name another file.", file=sys.stderr)
        return 1
    try:
        report = efficient.device_report("cuda")
    except ValueError as error:
        print(f"{error} Run this on a machine with a GPU and a torch built for it; nothing was written.", file=sys.stderr)
        return 1
    store(report, path)
    print(f"{report['machine']}, {report['date']}: {len(report['attention'])} lengths measured, stored in {path.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
