"""Pages that people read: one for each student, one for the teacher. Each is a file that needs nothing else."""

from collections import Counter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from classroom import assignment, batch, dates, marks, overview, progress_bar
from classroom.grading import FAILED
from classroom.names import page_of
from helpers.store.files import write_whole

MOST_DRAWN = 12  # mistakes in the picture: all are in the table


def _task_name(item):
    name = item.removeprefix("test-")
    return f"{name.removesuffix('-extreme')}, extreme inputs" if name.endswith("-extreme") else name


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
    with progress_bar("Writing pages", len(results)) as bar:
        for result in results:
            grade = grades[result["key"]] = due.grade_of(result, sheet)
            result["found"] = due.found(result)
            page, earlier = out / "feedback" / page_of(result), out / "feedback" / f"{result['key']}.html"
            write_whole(page, student_page(result, grade, task.title, due))
            if page != earlier:  # its name before the list of students was known, or by an older version
                earlier.unlink(missing_ok=True)
            bar.update()
    write_whole(out / "class.html", class_page(results, grades, task.title, about, overview.absent(out)))
    return out / "class.html"


def student_page(result, grade, title, due=None):
    """What a student gets back: points and, for what went wrong, why and one example. Never a solution. ``due``: the
    ``Dates``, without which no times are shown."""
    questions = {answer["grade_id"]: answer["question"] for answer in result["answers"]}
    return PAGES.get_template("student.html").render(title=title, result=result, grade=grade, known=grade.known,
                                                     questions=questions, failed=FAILED, due=due)


def class_page(results, grades, title, about, absent=()):
    """What a teacher looks at first: what the class did, question by question, which mistakes were made, who has what.
    ``grades``: {key: ``marks.Grade``}; ``about``: what the batch was about; ``absent``: who handed in nothing."""
    rows = [{**{name: result[name] for name in ("student", "status", "found", "flags")},
             "grade": grades[result["key"]], "page": page_of(result)} for result in results]
    mistakes = {}
    for result in results:
        for test in result["tests"]:
            if test["misconception"]:
                hint = test["message"].split("\n")[0]
                mistakes.setdefault((test["function"], test["misconception"]), (hint, set()))[1].add(result["student"])
    mistakes = sorted(mistakes.items(), key=lambda pair: -len(pair[1][1]))
    asked = {answer["grade_id"]: answer["question"] for result in results for answer in result["answers"]}
    questions, totals = overview.questions(results, grades), overview.totals(results, grades)
    most = max((grade.most for grade in grades.values()), default=0)
    return PAGES.get_template("class.html").render(
        title=title, rows=rows,
        statuses=[f"{n} {status}" for status, n in Counter(row["status"] for row in rows).most_common()],
        most=most, totals=totals, complete=all(grade.total is not None for grade in grades.values()), ends=overview.ENDS,
        questions=questions, asked=asked, hardest=min((one for one in questions if one.share is not None),
                                                      key=lambda one: one.share, default=None),
        mistakes=mistakes, most_drawn=MOST_DRAWN, columns=overview.columns(totals, most), absent=absent,
        refused=about.get("refused", []), told=about.get("told", []))
