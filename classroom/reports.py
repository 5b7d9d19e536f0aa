"""Pages that people read: one for each student, one for the teacher. Each is a file that needs nothing else."""

from collections import Counter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from classroom import assignment, batch, dates, marks
from classroom.grading import FAILED
from classroom.names import page_of
from helpers.store.files import write_whole


def _task_name(item):
    name, _, part = item.removeprefix("test-").partition("-")
    return f"{name}, {part} inputs" if part else name


# Whatever a student wrote is text in a page and never markup: autoescape sees to all of it.
PAGES = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True,
                    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
PAGES.filters |= {"number": "{:g}".format, "task": _task_name}


def write_pages(out):
    """Write a page for every student (``page_of``) and ``class.html``; returns the path of the latter."""
    out = Path(out)
    results, about = batch.read(out)
    sheet, task = marks.read_sheet(out), assignment.load(about["assignment"])
    (out / "feedback").mkdir(exist_ok=True)
    grades, due = {}, dates.read(out, results)
    for result in results:
        grade = grades[result["key"]] = due.grade_of(result, sheet)
        result["found"] = due.found(result)
        page, earlier = out / "feedback" / page_of(result), out / "feedback" / f"{result['key']}.html"
        write_whole(page, student_page(result, grade, task.title, due))
        if page != earlier:  # its name before the list of students was known, or by an older version
            earlier.unlink(missing_ok=True)
    write_whole(out / "class.html", class_page(results, grades, task, about.get("refused", []), about.get("told", [])))
    return out / "class.html"


def student_page(result, grade, title, due=None):
    """What a student gets back: points and, for what went wrong, why and one example. Never a solution. ``due``: the
    ``Dates``, without which no times are shown."""
    questions = {answer["grade_id"]: answer["question"] for answer in result["answers"]}
    return PAGES.get_template("student.html").render(title=title, result=result, grade=grade, known=grade.known,
                                                     questions=questions, failed=FAILED, due=due)


def class_page(results, grades, task, refused, told=()):
    """What a teacher looks at first: who has what, which tasks were hard, and which mistakes were made. ``told``: sentences
    on the list of students, such as who handed in nothing."""
    rows, totals, mistakes, ended = [], [], {}, {test.grade_id: Counter() for test in task.tests}
    for result in results:
        rows.append({**{name: result[name] for name in ("student", "status", "found", "flags")},
                     "grade": grades[result["key"]], "page": page_of(result)})
        if result["status"] == "graded":
            totals.append(sum(test["points"] or 0 for test in result["tests"]))
        for test in result["tests"]:
            ended.setdefault(test["grade_id"], Counter())[test["status"]] += 1
            if test["misconception"]:
                hint = test["message"].split("\n")[0]
                mistakes.setdefault((test["function"], test["misconception"]), (hint, set()))[1].add(result["student"])
    most = sum(test.points for test in task.tests)
    edges = [most * i / 10 for i in range(11)]
    distribution = [(f"{low:.0f}", f"{high:.0f}", sum(low <= total < high or total == high == most for total in totals))
                    for low, high in zip(edges, edges[1:], strict=False)]
    tasks = [(test.grade_id, test.points, ended[test.grade_id]["passed"],
              [f"{n} {status}" for status, n in ended[test.grade_id].most_common() if status != "passed"])
             for test in task.tests]
    statuses = [f"{n} {status}" for status, n in Counter(row["status"] for row in rows).most_common()]
    return PAGES.get_template("class.html").render(
        title=task.title, rows=rows, statuses=statuses, most=most, totals=sorted(totals), distribution=distribution,
        tasks=tasks, mistakes=sorted(mistakes.items(), key=lambda pair: -len(pair[1][1])), refused=refused, told=told)
