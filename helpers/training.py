"""One training loop for every model that the course trains.

Models here are small. On a small model torch's threads cost more than they help, and two kernels
with default threads can slow each other down ten times. So training uses one thread.
"""

import contextlib
import io
from pathlib import Path

import torch
from tqdm.auto import tqdm

from helpers import progress
from helpers.files import write_whole


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


class History(list):
    """The loss of each step; ``measured`` holds what ``metric`` gave: pairs (steps done, value)."""

    def __init__(self, losses=(), measured=()):
        super().__init__(losses)
        self.measured = list(measured)


def fit(model, batch, loss, steps, lr=0.01, seed=0, label="training", clip=1.0, metric=None, checkpoint=None, every=100):
    """Train ``model`` in place for ``steps`` steps and return the loss of each step, a ``History``.

    ``batch(generator)`` draws the inputs of one step from a ``torch.Generator`` and returns a tuple of tensors;
    ``loss(model, *inputs)`` returns a scalar. AdamW with the OneCycle schedule up to ``lr``; gradients longer
    than ``clip`` are shortened to it. ``seed`` makes the run repeatable. A progress bar shows the loss while
    a learner is present, unless ``label`` is None.

    ``metric(model)``, a number, is measured every ``every`` steps and after the last, and stands in the bar too.
    ``checkpoint``, the path of a file, is written at the same times; where it exists, the run goes on from it and
    ends as if it had never stopped. Raises ValueError when the loss stops being a finite number, when there is no
    folder for the checkpoint, and when the file is not a checkpoint of this run; it is left as it is.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps)
    run = {"steps": steps, "lr": lr, "seed": seed, "clip": clip, "parameters": sum(p.numel() for p in model.parameters())}
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    history = History()
    if checkpoint is not None:
        if not Path(checkpoint).absolute().parent.is_dir():
            raise ValueError(f"There is no folder for the checkpoint {checkpoint}; make it first, or give another path.")
        if Path(checkpoint).exists():
            history = _resume(checkpoint, run, parts, generator)
    first = len(history)
    model.train()
    with one_thread(), tqdm(range(first, steps), desc=label, initial=first, total=steps,
                            disable=label is None or not progress.live()) as steps_left:
        for step in steps_left:
            value = loss(model, *batch(generator))
            if not torch.isfinite(value):
                raise ValueError(f"The loss became {value.item()} at step {step}; try a smaller lr than {lr}.")
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
            history.append(value.item())
            if (step + 1) % every == 0 or step + 1 == steps:
                if metric is not None:
                    model.eval()
                    with torch.no_grad():
                        history.measured.append((step + 1, float(metric(model))))
                    model.train()
                if checkpoint is not None:
                    _save(checkpoint, run, parts, generator, history)
            if step % 10 == 0 or step + 1 == steps:
                shown = {"metric": f"{history.measured[-1][1]:.3f}"} if history.measured else {}
                steps_left.set_postfix(loss=f"{history[-1]:.3f}", **shown)
    model.eval()
    return history


# ---------------------------------------------------------------- checkpoints


def _save(path, run, parts, generator, history):
    state = {"run": run, "generator": generator.get_state(), "losses": list(history), "measured": history.measured,
             **{name: part.state_dict() for name, part in parts.items()}}
    contents = io.BytesIO()
    torch.save(state, contents)
    write_whole(path, contents.getvalue())


def _resume(path, run, parts, generator):
    """Put ``parts`` and ``generator`` into the state of the checkpoint; return its ``History``."""
    problem = None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # what a damaged file raises depends on where it is damaged
        state = None
    if not isinstance(state, dict) or "run" not in state:
        problem = "it is damaged or was not written by fit"
    elif state["run"] != run:
        problem = "it belongs to another run, with " + ", ".join(
            f"{name} {state['run'][name]} instead of {run[name]}" for name in run if state["run"][name] != run[name])
    if problem:
        raise ValueError(f"The checkpoint {Path(path).name} cannot be used: {problem}. "
                         "Delete the file to train from the beginning, or give another path.")
    for name, part in parts.items():
        part.load_state_dict(state[name])
    generator.set_state(state["generator"])
    return History(state["losses"], [tuple(pair) for pair in state["measured"]])
