"""One training loop for every model that the course trains.

Models here are small. On a small model torch's threads cost more than they help, and two kernels
with default threads can slow each other down ten times. So training uses one thread.
"""

import contextlib
import threading

import torch
from tqdm.auto import tqdm

from helpers.store import progress


@contextlib.contextmanager
def seeded(seed):
    """Run the body with torch's global random numbers seeded, and put them back afterwards.

    For building modules, which draw their first weights from the global generator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


_changing = threading.Lock()
_inside = []  # the threads that are in the body of one_thread, once for each time they entered
_outside = None  # the number before the first of them entered


@contextlib.contextmanager
def one_thread():
    """Run the body with one torch thread, and put the number back afterwards.

    torch keeps the number for each of Python's threads, and a new thread begins with the one that was set last. So a
    thread that began while others were in here would take their 1 for its own number: it gets theirs.
    """
    global _outside
    me = threading.get_ident()
    with _changing:
        threads = torch.get_num_threads()
        if not _inside:
            _outside = threads
        elif me not in _inside and threads == 1:
            threads = _outside
        _inside.append(me)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _changing:
            _inside.remove(me)
            torch.set_num_threads(threads)


def bar(things, label):
    """Go through ``things``, a list, with one progress bar while a learner is present: for a series of short runs."""
    return tqdm(things, desc=label, disable=not progress.live())


class History(list):
    """The loss of each step; ``measured`` holds what ``metric`` gave: pairs (steps done, value)."""

    def __init__(self):
        super().__init__()
        self.measured = []


def adamw(model, steps, lr):
    """AdamW for ``steps`` steps of ``model``; ``lr``, above 0, is the highest of the OneCycle schedule.

    Before each step gradients longer than 1 are shortened to it, and after it the schedule moves on.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)  # all weights at once: a sixth less time
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps)

    def clip(*_):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    optimizer.register_step_pre_hook(clip)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    return optimizer


@torch.enable_grad()  # whatever a cell before has set
def fit(model, batch, loss, steps, lr=0.01, seed=0, label="training", metric=None, every=100):
    """Train ``model`` in place for ``steps`` steps and return the loss of each step, a ``History``.

    ``batch(generator)`` draws the inputs of one step from a ``torch.Generator`` and returns a tuple of tensors;
    ``loss(model, *inputs)`` returns a scalar. The optimiser is that of `adamw`. ``seed`` makes the run repeatable.
    A progress bar shows the loss while a learner is present, unless ``label`` is None. ``metric(model)``, a
    number, is measured every ``every`` steps and after the last, and stands in the bar too. Raises ValueError when
    the loss stops being a finite number.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = adamw(model, steps, lr)
    history, shown = History(), {}
    model.train()
    with one_thread(), tqdm(range(steps), desc=label, disable=label is None or not progress.live()) as bar_of_steps:
        for step in bar_of_steps:
            value = loss(model, *batch(generator))
            if not torch.isfinite(value):
                raise ValueError(f"The loss became {value.item()} at step {step}; try a smaller lr than {lr}.")
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            history.append(value.item())
            last = step + 1 == steps
            if metric is not None and (last or (step + 1) % every == 0):
                history.measured.append((step + 1, _measure(metric, model)))
                shown = {"metric": f"{history.measured[-1][1]:.3f}"}
            if last or step % 10 == 0:
                bar_of_steps.set_postfix(loss=f"{history[-1]:.3f}", **shown)
    model.eval()
    return history


@torch.no_grad()
def _measure(metric, model):
    """``metric(model)`` as a number, with the model as it is after training."""
    model.eval()
    value = float(metric(model))
    model.train()
    return value
