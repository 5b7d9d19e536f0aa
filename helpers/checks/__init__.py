"""Check an exercise: ``from helpers.checks import check``, then ``check(softmax)``."""

import difflib
import importlib

from helpers import progress, show
from helpers.checks.adopt import adopt
from helpers.checks.core import Outcome, evaluate

__all__ = ["INDEX", "Outcome", "adopt", "check", "exercise", "show_progress", "usual_mistakes"]

INDEX = {  # exercise -> lesson; the checker is in helpers/checks/lessonNN.py
    "cosine_similarity": "01",
    "nearest_neighbours": "01",
    "analogy": "01",
    "softmax": "02",
    "self_attention": "02",
    "attention_entropy": "02",
    "hard_attention": "03",
    "soft_attention": "03",
    "additive_scores": "03",
    "project": "04",
    "attention_scores": "04",
    "bilinear_form": "04",
    "scaled_dot_product_attention": "05",
    "softmax_jacobian": "05",
    "score_variance": "05",
    "causal_mask": "06",
    "padding_mask": "06",
    "masked_attention": "06",
    "split_heads": "07",
    "merge_heads": "07",
    "multi_head_attention": "07",
    "count_attention_parameters": "07",
    "sinusoidal_encoding": "08",
    "rotate": "08",
    "alibi_bias": "08",
    "layer_norm": "09",
    "feed_forward": "09",
    "pre_norm_block": "09",
    "cross_attention": "10",
    "shift_right": "10",
    "greedy_decode": "10",
    "language_model_loss": "11",
    "sample_next": "11",
    "perplexity": "11",
    "attention_rollout": "12",
    "previous_token_score": "12",
    "ablate_head": "12",
    "mean_pool": "13",
    "map_weight_name": "13",
    "semantic_search": "13",
    "sliding_window_mask": "14",
    "linear_attention": "14",
    "grouped_query_attention": "14",
    "decode_step": "14",
    "online_softmax_attention": "14",
}


def check(attempt, name=None):
    """Check a learner's function and say what is wrong with it.

    ``attempt``: the function itself; ``name``: the exercise, when the function is called otherwise.
    Shows and returns an ``Outcome``; a passed exercise is kept in the progress file.
    Raises KeyError, with the closest known names, when there is no such exercise, and TypeError
    when ``attempt`` is not a function.
    """
    if not callable(attempt):
        raise TypeError("check takes the function itself, such as check(softmax), without calling it; "
                        f"it got {type(attempt).__name__}.")
    found = exercise(name or getattr(attempt, "__name__", type(attempt).__name__))
    outcome = evaluate(found, attempt)
    outcome.show()
    if outcome:
        progress.record("exercises", found.name, "passed")
    return outcome


def exercise(name):
    """The ``Exercise`` called ``name``. Raises KeyError with the closest known names."""
    if name not in INDEX:
        close = difflib.get_close_matches(str(name), INDEX, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}?" if close else "show_progress() lists the exercises."
        raise show.Unknown(f"There is no exercise called {name!r}. {hint} "
                           "If your function has another name, pass the exercise's: check(my_function, \"softmax\").")
    module = importlib.import_module(f"helpers.checks.lesson{INDEX[name]}")
    return next(e for e in module.EXERCISES if e.name == name)


def usual_mistakes(name):
    """Show the mistakes that the checker of exercise ``name`` recognises, with their hints."""
    show.table(["Mistake", "What the checker says"],
               [(m.id, m.hint) for m in exercise(name).misconceptions])


def show_progress():
    """Show which exercises have been passed and how many predictions were made, by lesson."""
    passed, predicted = progress.load("exercises"), progress.load("predictions")
    rows = []
    for lesson in sorted(set(INDEX.values())):
        names = [name for name, home in INDEX.items() if home == lesson]
        marks = ", ".join(f"{'✓' if name in passed else '·'} {name}" for name in names)
        rows.append((lesson, marks, f"{sum(n in passed for n in names)} of {len(names)}",
                     str(sum(key.startswith(f"{lesson}-") for key in predicted))))
    show.table(["Lesson", "Exercises", "Passed", "Predictions made"], rows)
