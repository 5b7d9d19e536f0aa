"""One training loop for every model that the course trains.

Models here are small. On a small model torch's threads cost more than they help, and two kernels
with default threads can slow each other down ten times. So training uses one thread.
"""

import contextlib

import torch
from tqdm.auto import tqdm

from helpers import progress


@contextlib.contextmanager
def seeded(seed):
    """Run the body with torch's global random numbers seeded, and put them back afterwards.

    For building modules, which draw their first weights from the global generator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def one_thread():
    """Run the body with one torch thread, and put the number back afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def bar(things, label):
    """Go through ``things``, a list, with one progress bar while a learner is present: for a series of short runs."""
    return tqdm(things, desc=label, disable=not progress.live())


def fit(model, batch, loss, steps, lr=0.01, seed=0, label="training", clip=1.0):
    """Train ``model`` in place for ``steps`` steps and return the loss of each step, a list of floats.

    ``batch(generator)`` draws the inputs of one step from a ``torch.Generator`` and returns a tuple of tensors;
    ``loss(model, *inputs)`` returns a scalar. AdamW with the OneCycle schedule up to ``lr``; gradients longer
    than ``clip`` are shortened to it. ``seed`` makes the run repeatable. A progress bar shows the loss while
    a learner is present, unless ``label`` is None. Raises ValueError when the loss stops being a finite number.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps)
    history = []
    model.train()
    with one_thread(), tqdm(range(steps), desc=label, disable=label is None or not progress.live()) as steps_done:
        for step in steps_done:
            value = loss(model, *batch(generator))
            if not torch.isfinite(value):
                raise ValueError(f"The loss became {value.item()} at step {step}; try a smaller lr than {lr}.")
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
            history.append(value.item())
            if step % 10 == 0:
                steps_done.set_postfix(loss=f"{history[-1]:.3f}")
    model.eval()
    return history
