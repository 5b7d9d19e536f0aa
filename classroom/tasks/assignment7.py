"""Assignment 7: a sealed circuit, another one for every student (lessons 12 and 17, helpers/sealed/).

Each function takes nothing and returns forecasts of what the grader finds when it performs the interventions itself, on
texts that nobody has seen. Model, words, questions and texts follow from the teacher's key, a detail of each variant.
"""

import functools

from classroom.tasks import Family, Forecasts, Task
from helpers import sealed
from helpers.sealed import forecasts

ENOUGH = 0.9  # of the points: the forecasts of a variant


@functools.lru_cache(maxsize=2048)
def sheet(rule, seed):
    """What belongs to a variant: (the packed model, part -> list of `forecasts.Question`)."""
    model, key = sealed.deal(rule, seed)
    return sealed.pack(model), forecasts.questions(model, key, seed)


def _listed(part, rule, seed):
    """The questions of a part as the teacher's list holds them."""
    return [list(question) for question in sheet(rule, seed)[1][part]]


def _questions(part, rule, seed, listed):
    """The questions of a part: those that `_listed` wrote, or computed. Raises ValueError, TypeError, KeyError where
    ``listed`` is something else."""
    if listed is None:
        return sheet(rule, seed)[1][part]

    def asks(words):
        return words if part == "rule" else tuple(words) if part == "find" else forecasts.Step(
            tuple(map(tuple, words[0])), *words[1:])
    found = [forecasts.Question(asks(words), tuple(options), tuple(map(float, shares))) for words, options, shares in listed]
    if not found or any(len(one.options) != len(one.shares) or not forecasts.in_words(one.asks) for one in found):
        raise ValueError("not a sheet")
    return found


def _forecasts(part, rule, seed, sheet=None):
    questions = functools.cache(functools.partial(_questions, part, rule, seed, sheet))
    if sheet is not None:
        questions()  # so that what cannot be read is refused before anybody is graded by it

    def judge(value):
        asked = questions()
        rows, amiss = forecasts.read(value, asked)
        share, mistake = forecasts.weighed(rows, asked), None
        if _per_cent(value, asked):
            share, mistake = 0.0, "per-cent"
        elif share < ENOUGH and len(asked[0].options) == 2 and forecasts.weighed(_turned(rows), asked) >= ENOUGH:
            mistake = "turned-around"
        words = {"per-cent": "Your shares are in per cent. Give them from 0 to 1.",
                 "turned-around": "Your shares are those of the other option. Each is the share of texts in which what the "
                                  "task names is the case."}
        share = max(0.0, share)
        if amiss and not mistake:
            amiss.append("What is no forecast earns as much as even shares do, nothing.")
        said = [words.get(mistake, "Your forecasts were compared with what the grader measured."),
                f"They are worth {share:.0%} of the points: 100% is for the measured shares, 0% for even ones."]
        return share, " ".join(said + ([] if mistake == "per-cent" else amiss)), mistake

    def detail(value):
        asked, lines = questions(), []
        for number, (p, question) in enumerate(zip(forecasts.read(value, asked)[0], asked, strict=True), 1):
            said, measured = (" ".join(f"{x:.2f}" for x in (row if len(row) > 2 else row[:1])) if row else "no forecast"
                              for row in (p, question.shares))
            lines.append(f"{number}. {forecasts.in_words(question.asks)}\n   answered {said}\n   measured {measured}")
        return "\n".join(lines)
    return Forecasts(part, judge, detail)


def _turned(rows):
    return [row and row[::-1] for row in rows]


def _per_cent(value, asked):
    """Are the shares in per cent? One number too large among shares is a slip."""
    try:
        rows = [forecasts.numbers(row) for row in value]
        if any(1.5 < sum(row) < 126 for row in rows) and (
                len(asked[0].options) > 2 or 2 * sum(sum(row) > 1.5 for row in rows) > sum(sum(row) > 0 for row in rows)):
            return not forecasts.read([[x / 100 for x in row] for row in rows], asked)[1]
    except (TypeError, ValueError, OverflowError):
        pass
    return False


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
    make, words, listed = (functools.partial(function, part) for function in (_forecasts, _words, _listed))
    return Task(make("practice", "practice"), family=Family(details, make, words, keyed=("seed",), sheet=listed))


TASKS = {part: _task(part) for part in forecasts.PARTS}
