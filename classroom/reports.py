"""Pages that people read: one for each student, one for the teacher. Plain HTML that needs nothing else."""

from collections import Counter, defaultdict
from html import escape
from pathlib import Path

from classroom import assignment, batch, marks
from classroom.grading import FAILED
from helpers.files import write_whole

STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3rem .7rem }
th { border-bottom: 2px solid #1a1a1a } tr:nth-child(even) td { background: #f3f6f8 }
.n { text-align: right; white-space: nowrap }
.table { overflow-x: auto } .table table { overflow-wrap: normal; min-width: 36rem }
section { border-left: 4px solid #6b6b6b; background: #f3f3f3; padding: .5rem 1rem; margin: .8rem 0 }
section.good { border-color: #00785a; background: #e9f6f1 } section.bad { border-color: #b34700; background: #fdf1e6 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; font-size: .88rem }
.bar { display: inline-block; background: #0072B2; height: .8em; vertical-align: baseline }
.line { white-space: nowrap } .quiet { color: #555 }
</style>"""


def write_pages(out):
    """Write ``feedback/KEY.html`` for every student and ``class.html``; returns the path of the latter."""
    out = Path(out)
    results, about = batch.read(out)
    sheet, task = marks.read_sheet(out), assignment.load(about["assignment"])
    (out / "feedback").mkdir(exist_ok=True)
    grades = {}
    for result in results:
        grade = grades[result["key"]] = marks.grade_of(result, sheet)
        write_whole(out / "feedback" / f"{result['key']}.html", student_page(result, grade, task.title))
    write_whole(out / "class.html", class_page(results, grades, task, about.get("refused", [])))
    return out / "class.html"


def student_page(result, grade, title):
    """What a student gets back: points and, for what went wrong, why and one example. Never a solution."""
    body = [f"<h1>{escape(title)}</h1><p>{escape(result['student'])}"]
    body.append(f"<br>Notebook: {escape(result['file'])} {batch.when(result['modified'])}</p>" if result["file"] else "</p>")
    known = sum(row.points for row in grade.rows if row.points is not None)
    if grade.total is not None:
        body.append(f"<p><b>{grade.total:g} of {grade.most:g} points</b></p>")
    elif result["status"] in FAILED:
        body.append(f"<section class=bad><b>Your notebook could not be graded: {escape(result['status'])}.</b> "
                    f"{escape(result['reason'])}<br>Your teacher will look at it.</section>")
    else:
        body.append(f"<p><b>{known:g} points so far</b>, of {grade.most:g}. Without points yet: {escape(grade.reason)}.</p>")
    answers = {answer["grade_id"]: answer["question"] for answer in result["answers"]}
    for row in grade.rows:
        points = "no points yet" if row.points is None else f"{row.points:g} of {row.most:g}"
        full = row.points is not None and row.points >= row.most
        kind = "good" if full else "" if row.item in answers and row.points != 0 else "bad"
        first, _, rest = row.message.partition("\n")
        if row.item in answers:
            first, rest = "", row.message
        heading = answers.get(row.item, _task_name(row.item))
        body.append(f"<section class='{kind}'><b>{escape(heading)}: {points}</b> "
                    f"<span class=quiet>({escape(row.status)})</span>"
                    + f"<div>{escape(first)}</div>" * bool(first) + f"<pre>{escape(rest)}</pre>" * bool(rest)
                    + f"<p><b>Comment:</b> {escape(row.comment)}</p>" * bool(row.comment) + "</section>")
    notes = [*result["found"], *result["notes"]]
    if notes:
        body.append("<h2>Noticed on the way</h2><p class=quiet>None of this costs points by itself.</p><ul>"
                    + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>")
    return _page(title, body)


def class_page(results, grades, task, refused):
    """What a teacher looks at first: who has what, which tasks were hard, and which mistakes were made."""
    statuses = Counter(result["status"] for result in results)
    body = [f"<h1>{escape(task.title)}: the class</h1>",
            f"<p>{len(results)} submissions: {', '.join(f'{n} {s}' for s, n in statuses.most_common())}.</p>",
            "<h2>Points for code</h2>", _distribution(results, task), "<h2>Tasks</h2>", _tasks(results, task),
            "<h2>Mistakes, most frequent first</h2>", _mistakes(results), "<h2>Students</h2>"]
    rows = []
    for result in results:
        grade = grades[result["key"]]
        notes = [*map(escape, result["found"]), *(f"<b>flag</b>: {escape(flag)}" for flag in result["flags"])]
        name = f"<a href='feedback/{escape(result['key'])}.html'>{escape(result['student'])}</a>"
        reason = "" if grade.total is not None else escape(grade.reason)
        rows.append((name, escape(result["status"]), "" if grade.total is None else f"{grade.total:g}", reason,
                     "<br>".join(notes)))
    body.append(_table(("Student", "Status", "Points", "Blank because", "Noticed"), rows, numbers=(2,)))
    if refused:
        body.append("<h2>Left out when collecting</h2><ul>" + "".join(f"<li>{escape(r)}</li>" for r in refused) + "</ul>")
    return _page(task.title, body)


def _distribution(results, task):
    most = sum(test.points for test in task.tests)
    totals = [sum(t["points"] or 0 for t in result["tests"]) for result in results if result["status"] == "graded"]
    if not totals:
        return "<p>Nobody has points yet.</p>"
    edges = [most * i / 10 for i in range(11)]
    counts = [sum(low <= t < high or t == high == most for t in totals) for low, high in zip(edges, edges[1:], strict=False)]
    rows = [(f"{low:.0f} to {high:.0f}", _bar(count, max(counts)))
            for low, high, count in zip(edges, edges[1:], counts, strict=False)]
    middle = sorted(totals)[len(totals) // 2]
    return (f"<p>Of {most:g} points, for the {len(totals)} that could be graded in full; half have {middle:g} or more.</p>"
            + _table(("Points", "Students"), rows))


def _tasks(results, task):
    rows = []
    for test in task.tests:
        ended = Counter(t["status"] for result in results for t in result["tests"] if t["grade_id"] == test.grade_id)
        rows.append((escape(_task_name(test.grade_id)), f"{test.points:g}", _bar(ended["passed"], len(results)),
                     escape(", ".join(f"{n} {s}" for s, n in ended.most_common() if s != "passed"))))
    return _table(("Task", "Points", "Passed", "Others"), rows, numbers=(1,))


def _mistakes(results):
    made, hints = defaultdict(set), {}
    for result in results:
        for test in result["tests"]:
            if test["misconception"]:
                key = test["function"], test["misconception"]
                made[key].add(result["student"])
                hints[key] = test["message"].split("\n")[0]
    if not made:
        return "<p>None that the checkers know.</p>"
    rows = [(str(len(students)), escape(function), f"<b>{escape(mistake)}</b><br>{escape(hints[function, mistake])}",
             escape(", ".join(sorted(students))))
            for (function, mistake), students in sorted(made.items(), key=lambda pair: -len(pair[1]))]
    return _table(("Students", "Function", "Mistake, and what the student was told", "Who"), rows, numbers=(0,))


def _task_name(item):
    name, _, part = item.removeprefix("test-").partition("-")
    return f"{name}, {part} inputs" if part else name


def _bar(count, most):
    return f"<span class=line><span class=bar style='width:{9 * count / max(most, 1):.2f}rem'></span> {count}</span>"


def _table(columns, rows, numbers=()):
    head = "".join(f"<th scope=col{' class=n' if i in numbers else ''}>{escape(column)}</th>"
                   for i, column in enumerate(columns))
    body = "".join("<tr>" + "".join(f"<td{' class=n' if i in numbers else ''}>{value}</td>" for i, value in enumerate(row))
                   + "</tr>" for row in rows)
    # On a phone the table scrolls, with keys as well:
    return (f"<div class=table tabindex=0 role=region aria-label='{escape(columns[0])}'><table>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def _page(title, body):
    return ("<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{escape(title)}</title>{STYLE}</head><body>{''.join(body)}</body></html>\n")
