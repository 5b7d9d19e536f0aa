"""The attention inventory: 24 questions of the bank, taken before the course and again after lesson 17.

Nothing is told the first time: whoever has heard the answers cannot be measured with the same questions. Each learner gets
the questions and their options in an order of their own, another one the second time. An answer of two tiers counts as
right when the reason is right as well. Whether these questions measure what they are meant to has never been tested on
people; docs/teaching.md says what follows from that.
"""

import random
import secrets

from helpers.page import questions, show
from helpers.store import progress

BEFORE, AFTER = TIMES = "before", "after"
RIGHT = "right"
SECTION = "inventory"  # of the progress file: "seed", "before 02-between": ["not-normalised", None], "before": "done"


def items():
    """The questions of the inventory: a list of ``Question``, in the order of the bank."""
    return [question for question in questions.load()[1].values() if question.inventory]


def order(when, seed):
    """What a learner with this ``seed`` is asked: a list of (question, its options, its reasons), each list shuffled."""
    chance = random.Random(f"{seed} {when}")
    mixed = chance.sample(items(), len(items()))
    return [(q, *(chance.sample(tier, len(tier)) for tier in (q.options, q.reasons))) for q in mixed]


def name_of(option):
    """What an answer is kept as: "right", or the name of the misconception."""
    return option.misconception or RIGHT


def answers(when, known):
    """{id: [answer, reason]} of all questions, None where nothing was chosen; there is a reason in two tiers only.

    ``known``: the section of the progress file. What is damaged in it, or no longer an option, counts as nothing chosen."""
    chosen = {}
    for question in items():
        pair = known.get(f"{when} {question.id}")
        pair = pair if isinstance(pair, list) and len(pair) == 2 else [None, None]
        chosen[question.id] = [name if name in list(map(name_of, tier)) else None
                               for name, tier in zip(pair, (question.options, question.reasons), strict=True)]
    return chosen


def is_right(question, given):
    """Whether [answer, reason] is right, in both tiers where there are two."""
    return given[0] == RIGHT and (not question.reasons or given[1] == RIGHT)


def right_by_theme(when, known):
    """{name of a theme: which of its questions are right, a list of bools}. ``known``: as for `answers`."""
    chosen = answers(when, known)
    return {name: [is_right(q, chosen[q.id]) for q in items() if q.theme == theme]
            for theme, name in questions.load()[0].items()}


def by_chance():
    """How many are right on average when each option, and each reason, is drawn at random."""
    return sum(1 / len(q.options) / max(1, len(q.reasons)) for q in items())


def normalised(before, after, most):
    """Hake's gain: what was gained, as a share of what could be. None where nothing was left to gain."""
    return (after - before) / (most - before) if before < most else None


def take(when):
    """Ask the 24 questions ``when``, "before" or "after": one at a time with a learner at the keyboard; otherwise say what
    they are about. Raises ValueError for another word."""
    if when not in TIMES:
        raise ValueError(f'The inventory is taken "before" or "after" the course, and not {when!r}.')
    if not progress.live():
        themes = [q.theme for q in items()]
        rows = [[name, "○" * themes.count(theme)] for theme, name in questions.load()[0].items()]
        show.table(["theme", "questions"], rows,
                   f"The attention inventory: {len(themes)} questions, before the course and after it")
        show.note(f"Guessing alone gets {by_chance():.0f} of them right. They are asked here, one at a time, in your own "
                  "copy of the lesson (<code>make lab</code>), and your answers stay on your computer.")
        return
    known = progress.load(SECTION)
    if known.get(when) == "done":
        show.note(_kept(when, known))
    elif when == BEFORE and any(key.startswith(f"{AFTER} ") for key in known):
        show.note("You have begun with the second time, in lesson 17, so it is too late for the first: what would it be "
                  "compared with?")
    else:
        _Sitting(when, known).show()


def gain():
    """Compare the second time with the first, theme by theme, and explain what is not right yet. Shows nothing of it
    before the second time is done."""
    known = progress.load(SECTION)
    if not progress.live():
        show.note(f"Theme by theme you see here what you gained. An example: 10 of {len(items())} right before the course "
                  f"and 17 after it are {normalised(10, 17, len(items())):.0%} of what there was to gain.")
        return
    if known.get(AFTER) != "done":
        show.note("When you have answered the questions above for the second time, run this cell again: it shows what you "
                  "have gained, theme by theme, and explains what is not right yet.")
        return
    chosen = {when: answers(when, known) for when in TIMES}
    themes = {when: right_by_theme(when, known) for when in TIMES if any(answer for answer, _ in chosen[when].values())}
    rows = [[name, *("●" * sum(right[name]) + "○" * (len(right[name]) - sum(right[name])) for right in themes.values())]
            for name in questions.load()[0].values()]
    totals = {when: sum(map(sum, right.values())) for when, right in themes.items()}
    rows.append(["all", *(f"{n} of {len(items())}" for n in totals.values())])
    show.table(["theme", *themes], rows, "Right answers (●) in the attention inventory")
    show.note(_in_words(totals), kind="good" if totals.get(AFTER, 0) > totals.get(BEFORE, 0) else "info")
    if open_ := [q for q in items() if not is_right(q, chosen[AFTER][q.id])]:
        show.note("<b>What is not right yet.</b>" + "".join(_explained(q, chosen) for q in open_))


def _in_words(totals):
    most, chance = len(items()), f"Guessing alone gets {by_chance():.0f} right."
    few = "Three questions say little about one theme, as a lucky guess is one of them; all 24 together say more."
    if BEFORE not in totals:
        return (f"{totals.get(AFTER, 0)} of {most} are right. {chance} What you gained nobody can say, because the first "
                f"time, in lesson 00, was left out. {few}")
    before, after = totals[BEFORE], totals.get(AFTER, 0)
    share = normalised(before, after, most)
    if share is None:
        sentence = f"Everything was right the first time, so nothing was left to gain; now {after} are."
    elif after > before:
        sentence = (f"You had {most - before} to gain, and you gained {after - before} of them: {share:.0%}. That share is "
                    "called the <b>normalised gain</b>.")
    else:
        sentence = "As many are right as before." if after == before else f"{before - after} fewer are right than before."
    return f"{sentence} {chance} {few}"


def _explained(question, given):
    """A fold: the question, what was answered, why that is not so, and what is."""
    tiers = [(question.options, 0), *([(question.reasons, 1)] if question.reasons else [])]
    said = []
    for options, tier in tiers:
        answer, earlier = given[AFTER][question.id][tier], given[BEFORE][question.id][tier]
        because = "Because " if tier else ""
        right = next(o for o in options if not o.misconception)
        if mine := next((o for o in options if o.misconception and o.misconception == answer), None):
            again = " (as the first time)" if answer == earlier else ""
            said.append(f"You said{again}: <i>{because}{questions.as_html(mine.text)}</i><br>{questions.as_html(mine.why)}")
        elif answer is None:
            said.append("You left this open.")
        said.append(f"<b>Right:</b> <i>{because}{questions.as_html(right.text)}</i><br>{questions.as_html(right.why)}")
    return (f"<details style='margin:6px 0'><summary style='cursor:pointer'>{questions.as_html(question.ask)}</summary>"
            + "".join(f"<p style='margin:4px 0 4px 16px'>{line}</p>" for line in said)
            + f"<p style='margin:4px 0 8px 16px'>Lesson {question.lesson} has it.</p></details>")


def _kept(when, known):
    given = answers(when, known)
    n = sum(answer is not None for answer, _ in given.values())
    open_ = f", and {len(given) - n} left open" if n < len(given) else ""
    then = ("What they were worth you see after the second time, in lesson 17." if when == BEFORE else
            "The next cell shows what you have gained.")
    return f"<b>Kept.</b> {n} of {len(given)} are answered{open_}. {then}"


class _Sitting:
    """The questions of one time, one after the other, in widgets. Each answer is kept as soon as it is chosen."""

    def __init__(self, when, known):
        import ipywidgets

        if not isinstance(known.get("seed"), int):
            known["seed"] = secrets.randbelow(2**31)
            progress.record(SECTION, "seed", known["seed"])
        self.when, self.asked, self.given = when, order(when, known["seed"]), answers(when, known)
        self.place = next((n for n, (q, *_) in enumerate(self.asked) if self.given[q.id][0] is None), 0)
        self.whole = ipywidgets.VBox(layout={"max_width": "820px"})

    def show(self):
        from IPython.display import display

        self.go(0)
        display(self.whole)

    def go(self, step):
        """Go on by so many questions; behind the last one the answers are kept for good."""
        import ipywidgets

        self.place += step
        if self.place == len(self.asked):
            progress.record(SECTION, self.when, "done")
            self.whole.children = [ipywidgets.HTML(show.box(_kept(self.when, progress.load(SECTION)), role="status"))]
            return
        question, options, reasons = self.asked[self.place]
        parts = [ipywidgets.HTML(f"<div style='line-height:1.45'><small>{self.place + 1} of {len(self.asked)}</small><br>"
                                 f"{questions.as_html(question.ask)}</div>"), *self.tier(question, options, 0)]
        if reasons:
            parts += [ipywidgets.HTML("<div style='margin-top:6px'>Because ...</div>"), *self.tier(question, reasons, 1)]
        told = ("Nothing is told until the second time, in lesson 17." if self.when == BEFORE else
                "What they were worth is told when you are done.")
        intro = (f"{questions.STYLE}<div style='line-height:1.45;margin-bottom:8px'><b>The attention inventory.</b> {told} "
                 "Leave open what you would have to guess.</div>")
        self.whole.children = [ipywidgets.HTML(intro), *parts, self.ways()]

    def ways(self):
        """The buttons that lead back and onward."""
        import ipywidgets

        last = self.place + 1 == len(self.asked)
        back, onward = (ipywidgets.Button(description=text, layout={"width": "auto"})
                        for text in ("Back", "I am done: keep my answers" if last else "Next"))
        back.disabled, onward.button_style = self.place == 0, "primary"
        back.on_click(lambda _: self.go(-1))
        onward.on_click(lambda _: self.go(1))
        return ipywidgets.HBox([back, onward])

    def tier(self, question, options, which):
        """Buttons for the answers (``which`` 0) or the reasons (1), of which one may be chosen; the last choice counts."""
        chosen = self.given[question.id]

        def label():
            for button, option in zip(buttons, options, strict=True):
                button.description = f"{'●' if chosen[which] == name_of(option) else '○'} {questions.as_plain(option.text)}"

        def click(number):
            name = name_of(options[number])
            chosen[which] = None if chosen[which] == name else name
            progress.record(SECTION, f"{self.when} {question.id}", chosen)
            label()

        buttons = questions.buttons([""] * len(options), click)
        label()
        return buttons
