"""What somebody may have set for the whole process, as it is without their help for a while, and then as it was.

A check gives one answer, and a pretrained model one text, whatever stands in the cells before: errors for NumPy's warnings,
gradients that are off, another kind of numbers, another way to print them. Importing this module imports no torch.
"""

import contextlib
import random
import sys
import warnings

import numpy as np

SEED = 20170612  # of the global random numbers: none that a lesson uses
DEEP = 3000  # calls in one another, as JupyterLab allows
_PRINTING = dict(precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False, nanstr="nan", infstr="inf",
                 sign="-", formatter=None, floatmode="maxprec", legacy=False)


@contextlib.contextmanager
def usual():
    """Run the body, or each call of the function that this decorates, with the usual settings of Python, NumPy and torch.

    No warnings; NumPy's own way to print; all global random numbers seeded; torch as in `usual_torch`, with gradients.
    What the body sets is gone afterwards, too, and whatever was set before is back.
    """
    limit, numpy_state, python_state = sys.getrecursionlimit(), np.random.get_state(), random.getstate()
    with warnings.catch_warnings(), np.errstate(all="ignore"), np.printoptions(**_PRINTING), usual_torch(seed=SEED) as torch:
        warnings.simplefilter("ignore")
        np.random.seed(SEED)
        random.seed(SEED)
        with contextlib.suppress(RecursionError):  # deeper already
            sys.setrecursionlimit(DEEP)
        try:
            with torch.enable_grad() if torch else contextlib.nullcontext():
                yield
        finally:
            sys.setrecursionlimit(limit)
            np.random.set_state(numpy_state)
            random.setstate(python_state)


@contextlib.contextmanager
def usual_torch(seed=None):
    """Run the body with torch's numbers of the usual kind and in the usual place, float32 on the processor.

    ``seed``: of torch's global random numbers, which then are as before at the end. Gives torch, or None where nothing has
    imported it yet.
    """
    torch = sys.modules.get("torch")
    if not hasattr(torch, "set_default_device"):  # not imported, or not to the end
        yield None
        return
    kind, place = torch.get_default_dtype(), torch.get_default_device()
    state = None if seed is None else torch.get_rng_state()
    _set(torch, torch.float32, torch.device("cpu"))
    try:
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        yield torch
    finally:
        _set(torch, kind, place)
        if state is not None:
            torch.set_rng_state(state)


def _set(torch, kind, place):
    if torch.get_default_dtype() != kind:
        torch.set_default_dtype(kind)
    if torch.get_default_device() != place:
        torch.set_default_device(None if place.type == "cpu" else place)
