"""Another processor, emulated: first weights that differ in their last bit.

Training amplifies the last bit, so that a processor that adds in another order ends with slightly other weights. ``jitter``
does the same on purpose, and on one machine: what still holds under a few draws of it holds on other processors.
`make stability` runs every notebook that trains under five draws, and an experiment measures with it how far its own
numbers drift (see ``helpers/experiment.py``). The two descents without an optimiser, lesson 03's with two numbers and
assignment 6's with thirty, are in double precision, where the last bit is nowhere near what they print: they stay out.
"""

import contextlib
import os

SIZE = 2e-7  # of the noise, relative to each weight: about one unit in the last place of float32
DRAWS = range(1, 6)
VARIABLE = "ATTENTION_COURSE_JITTER"  # an environment variable: the draw that a kernel of `make stability` works under
NOTEBOOK = "ATTENTION_COURSE_NOTEBOOK"  # another: the notebook that a kernel runs
RECORD = "ATTENTION_COURSE_TRAINED"  # another: a file that gets the name of each notebook which trains under jitter
_for_ever = contextlib.ExitStack()  # what `install` entered
_running = []  # for each body that runs: the function that puts its noise on weights


@contextlib.contextmanager
def jitter(draw, size=SIZE):
    """Every optimiser of torch that is made in the body first multiplies its weights by 1 + ``size`` · normal noise.

    ``draw``: a whole number that seeds the noise. Each optimiser gets the same noise for the same shapes, so that two loops
    which a cell compares begin alike. Yields a list with one entry, a number of weights, for each optimiser made: an empty
    one says that nothing was trained; with ``size`` 0 that is all it tells. torch's global random numbers are left alone.
    """
    import torch

    made, first = [], torch.optim.Optimizer.__init__

    def shake(weights):
        generator = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for weight in weights if size else ():
                weight.mul_(1 + size * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        made.append(sum(weight.numel() for weight in weights))
        if size and os.environ.get(RECORD):  # now, because a kernel is ended without a farewell
            with open(os.environ[RECORD], "a", encoding="utf-8") as record:
                record.write(os.environ[NOTEBOOK] + "\n")

    def noisy(self, *args, **options):
        first(self, *args, **options)
        shake([weight for group in self.param_groups for weight in group["params"]])

    torch.optim.Optimizer.__init__ = noisy
    _running.append(shake)
    try:
        yield made
    finally:
        _running.remove(shake)
        torch.optim.Optimizer.__init__ = first


def touch(weights):
    """Jitter weights that no optimiser gets, a list of tensors, as the body around asks; outside of one nothing happens.

    For what amplifies the last bit without training, such as a very deep stack.
    """
    for shake in _running:
        shake(weights)


def install():
    """Jitter everything that this process trains from now on, if the environment variable asks for it."""
    if os.environ.get(VARIABLE):
        _for_ever.enter_context(jitter(int(os.environ[VARIABLE])))
