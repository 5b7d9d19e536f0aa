"""Assignment 7: a sealed circuit, another one for every student (lessons 12 and 17, helpers/sealed.py).

Each function takes nothing and returns forecasts of what the grader finds when it performs the interventions itself, on
texts that nobody has seen. Model, words, questions and texts follow from the teacher's key, a detail of each variant.
"""

import functools

from classroom.tasks import Family, Forecasts, Task
from helpers import sealed

ENOUGH = 0.9  # of the points: the forecasts of a variant


@functools.lru_cache(maxsize=512)
def sheet(rule, seed):
    """What belongs to a variant: (the packed model, part -> list of `sealed.Question`)."""
    model, key = sealed.deal(rule, seed)
    return sealed.pack(model), sealed.questions(model, key, seed)


def _forecasts(part, rule, seed):
    def judge(value):
        asked = sheet(rule, seed)[1][part]
        share, mistake = sealed.points(_smaller(value, asked), asked), None
        if _smaller(value, asked) is not value:
            share, mistake = 0.0, "per-cent"
        elif share < ENOUGH and len(asked[0].options) == 2 and sealed.points(_turned(value), asked) >= ENOUGH:
            mistake = "turned-around"
        words = {"per-cent": "Your shares are in per cent. Give them from 0 to 1.",
                 "turned-around": "Your shares are those of the other option. Each is the share of texts in which what the "
                                  "task names is the case."}
        share = max(0.0, share)
        return share, f"{words.get(mistake, 'Your forecasts were compared with what the grader measured.')} They are " \
                      f"worth {share:.0%} of the points: 100% is for the measured shares, 0% for even ones.", mistake
    return Forecasts(part, judge)


def _turned(value):
    return [1 - x[0] for x in _rows(value)]


def _rows(value):
    return [sealed._numbers(row) for row in value]


def _smaller(value, asked):
    """Shares in per cent as shares; all others as they are."""
    try:
        rows = _rows(value)
        if any(1.5 < sum(row) < 100.5 for row in rows):
            less = [[x / 100 for x in row] for row in rows]
            sealed.points(less, asked)
            return less
    except (TypeError, ValueError, OverflowError):
        pass
    return value


def _words(part, rule, seed):
    packed, asked = sheet(rule, seed)
    truth = [[round(q, 3) for q in question.shares] if len(question.options) > 2 else round(question.shares[0], 3)
             for question in asked[part]]
    passages = {"solution": _assigned(f"the_{part}", truth).replace("\n", "\n    ")}
    if part == "rule":
        passages["model"] = f'model = sealed.opened("""\n{_lines(packed)}\n""")'
    if part in ("cut", "move", "order"):
        steps = [(list(step.heads), *(() if part == "cut" else (step.what, step.place)), step.turns)
                 for step in (question.asks for question in asked[part])]
        passages["questions"] = _assigned(f"{part}_questions", steps)
    return passages


def _assigned(name, rows):
    return f"{name} = [\n" + "".join(f"    {row!r},\n".replace("'", '"') for row in rows) + "]"


def _lines(text):
    return "\n".join(text[i:i + 98] for i in range(0, len(text), 98))


def _task(part):
    details = {"rule": tuple(sealed.RULES), "seed": ("practice",)}
    make, words = (functools.partial(function, part) for function in (_forecasts, _words))
    return Task(make("practice", "practice"), family=Family(details, make, words, keyed=("seed",)))


TASKS = {part: _task(part) for part in sealed.PARTS}
