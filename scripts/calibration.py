"""What a run cost, in CPU-seconds and against a fixed piece of work, because machines differ by a factor of three.

One and the same machine took between 1.3 and 3.2 CPU-seconds for the piece of work within two hours, so it is measured
before and after a run: `make check` and `make test` end with a line such as

    612 CPU-seconds; the calibration took 1.2 before and 1.4 after: 471 calibrations.
"""

import subprocess
import sys
import time

try:
    import resource
except ImportError:  # Windows, where nobody adds up what the children used
    resource = None

ALONE = [sys.executable, "-m", "scripts.calibration"]


def work():
    """A loop of Python and products of matrices, as lessons have both; returns its CPU-seconds in this process."""
    import numpy as np

    start, total = time.process_time(), 0
    for i in range(10**7):
        total += i * i
    A = np.random.default_rng(0).standard_normal((600, 600))
    for _ in range(20):
        A @ A
    return time.process_time() - start


def measured(environment):
    """The CPU-seconds of the work in a process of its own."""
    return float(subprocess.run(ALONE, env=environment, capture_output=True, text=True, check=True).stdout)


def spent():
    """The CPU-seconds of all processes that this one started and waited for, with theirs; None on Windows."""
    if resource is None:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sentence(seconds, before, after):
    """What a run cost. ``seconds``: of CPU, or None where they cannot be counted; ``before``, ``after``: calibrations."""
    took = f"the calibration took {before:.2f} CPU-seconds before and {after:.2f} after"
    if seconds is None:
        return f"What the tests cost cannot be counted on this system; {took}."
    return f"{seconds:.0f} CPU-seconds; {took}: {2 * seconds / (before + after):.0f} calibrations."


if __name__ == "__main__":
    print(work())
