"""python -m classroom VERB; --help lists the verbs. docs/teaching.md is the page for teachers."""

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

ENVIRONMENT = ("python -m classroom runs in the course's environment, which `make setup` makes; type . .venv/bin/activate "
               "first.")
try:
    from classroom import (
        Problem,
        assignment,
        attempts,
        batch,
        clock,
        copies,
        dates,
        exports,
        gain,
        gradescope,
        marking,
        marks,
        proof,
        quiz,
        reports,
        roster,
        sandbox,
        teams,
        term,
        trial,
        variants,
    )
    from classroom.names import name_for_people
except ModuleNotFoundError as error:
    sys.exit(f"The package {error.name} is not here: {ENVIRONMENT}")

COLUMN = f"which column of this CSV is one of {', '.join(roster.COLUMNS)}, where it is not found by itself"
TRUST = "--without-sandbox-i-trust-every-student"


def main(arguments=None):
    """Returns the exit status; what goes wrong is one sentence on stderr."""
    for stream in (sys.stdout, sys.stderr):  # a name in letters that the terminal does not have must not end a command
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        status = options.verb(options) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Problem as error:
        problem = str(error)
    except sandbox.NoSandbox as error:
        problem = (f"{error} Without one a submission can read and change everything that you can; if you know every "
                   f"student and have read the notebooks, {TRUST} grades all the same.")
    except KeyboardInterrupt:
        again = ", without --again," if getattr(options, "again", False) else ""
        problem = f"Stopped. The same command{again} goes on where it was."
    except ModuleNotFoundError as error:
        problem = (f"The package {error.name} is missing: it comes with the extra `classes`, which `make grade` installs."
                   if error.name in ("dateparser", "jinja2") else f"The package {error.name} is not here: {ENVIRONMENT}")
    except FileNotFoundError as error:
        problem = f"{error.filename} does not exist."
    except NotADirectoryError as error:
        problem = f"{error.filename} cannot be written: a part of its name is a file. Name a folder."
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}." if error.filename else f"{error}."
    print(problem, file=sys.stderr)
    return 1


def _parser():
    parser = argparse.ArgumentParser(prog="python -m classroom", description="Graded work for a class.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name, function, words, *arguments):
        """A new verb with these arguments, each (name, what it is); returns its ``add_argument`` for options."""
        new = verbs.add_parser(name, help=words)
        new.set_defaults(verb=function)
        for argument, meaning in arguments:
            new.add_argument(argument, help=meaning)
        return new.add_argument

    def into_a_platform(option, style):
        option("--format", choices=exports.FORMATS, default=style)
        option("--into", metavar="FILE", help="the platform's own gradebook or worksheet, to copy with grades")
        option("--column", help="its column for the grade")

    which = "assignment", "such as " + ", ".join(assignment.names()) + "; or your own notebook, such as questions.ipynb"
    graded = "out", "the folder that grade wrote to"
    listed = {"metavar": "FILE", "help": "the list that release wrote, ending in -variants.json"}

    option = verb("try", lambda options: trial.run(options.assignment, options.out, main),
                  "a dry run with ten imaginary students, from release to export", which)
    option("out", nargs="?", default="trial", help="a new folder to write to (default: trial)")

    option = verb("release", release, "write the notebook for students: no solutions, no hidden tests",
                  which, ("out", "folder to write to"))
    option("--variant", metavar="NAME", help="with other details than the public ones, such as autumn-2027")
    option("--private", metavar="FILE", help="details of your own, in a TOML outside the course")
    option("--students", metavar="FILE", help="one for each of these: a name in each line, or a CSV of Moodle or Canvas")
    option("--column", action="append", default=[], metavar="WHAT=HEADING", help=COLUMN)

    option = verb("grade", grade, "grade what students handed in, each notebook in a sandbox", which,
                  ("submissions", "a folder (of folders, notebooks or zips) or a zip of Moodle or Canvas"),
                  ("out", "folder for results; nothing is written elsewhere"))
    option("--workers", type=lambda text: int(_limit(text)), metavar="N",
           help="notebooks at a time (default: as many as cores)")
    option(TRUST, dest="trusted", action="store_true", help="where there is no sandbox")
    option("--variants", **listed)
    option("--roster", metavar="FILE", help="the class: a CSV of Moodle or Canvas, or the list that release wrote (which is "
           "read by itself where it lies beside --variants)")
    option("--column", action="append", default=[], metavar="WHAT=HEADING", help=COLUMN)
    option("--count", choices=attempts.HOW, default="last", help="which of several notebooks of a student counts")
    option("--student", default="", metavar="WHO", help="grade this one alone: a name, number, login or key; the others' "
           "results stay")
    option("--zone", type=_zone, metavar="NAME", help="by whose clock all dates are, such as Europe/Berlin (default: this "
           "machine's; kept with the results)")
    option("--again", action="store_true", help="grade everything again, also what has not changed")
    most = sandbox.Limits()
    for name, number, words in (("--cell-seconds", most.cell_seconds, "of CPU time for a cell"),
                                ("--call-seconds", most.call_seconds, "of CPU time for the calls of a test"),
                                ("--total-seconds", most.total_seconds, "for everything, by the clock"),
                                ("--memory", most.memory / 2**30, "GiB for each process; twice as much for all together")):
        option(name, type=_limit, default=number, metavar="N", help=f"{words} (default: {number:g})")

    option = verb("mark", mark, "a page in your browser on which to mark written answers; every step is saved", graded)
    option("--names", action="store_true", help="show whose an answer is")
    option("--by", default="", metavar="NAME", help=f"on a sheet of your own, {marking.sheet_of('NAME')}")
    option("--merge", nargs="+", metavar="SHEET", help=f"enter these sheets into {marks.SHEET}, and end")

    option = verb("late", late, "say when it was due, what late work costs, and who has longer", graded)
    option("--due", metavar="DATE", help="such as 2027-10-31 or '2027-10-31 18:00'")
    option("--penalty", type=_percent, metavar="N", help="per cent of the points for a day begun (default: 10)")
    option("--most", type=_percent, metavar="N", help="per cent of the points that all days cost (default: 100)")
    option("--grace", type=_limit, metavar="N", help="minutes that do not count (default: 0)")
    option("--extend", action="append", default=[], metavar="STUDENT=DATE",
           help="another date for one student; STUDENT= takes it out again")
    option("--came", action="append", default=[], metavar="STUDENT=DATE", help="when a student handed in")
    option("--times", metavar="FILE", help="Moodle's grading worksheet, which says when everybody handed in")
    option("--column", metavar="HEADING", help="its column for that, where it is not found by itself")

    option = verb("feedback", feedback, "write a page for each student and all that is for the teacher", graded)
    into_a_platform(option, None)
    verb("copies", compare, "write a page for the teacher on submissions that are alike; no grade changes", graded)
    option = verb("export", export, "write the grades for a learning platform", graded)
    into_a_platform(option, "csv")

    option = verb("gradescope", autograder, "write an autograder for Gradescope", which, ("out", "the zip to write"))
    option("--variants", **listed)
    option("--roster", metavar="FILE", help="the class with e-mail addresses (default: that beside --variants)")
    option("--column", action="append", default=[], metavar="WHAT=HEADING", help=COLUMN)
    option(TRUST, dest="trusted", action="store_true", help="grade even where Gradescope has no sandbox")

    option = verb("term", whole_term, "write a page over several assignments: who has what, and which mistakes stay")
    option("graded", nargs="+", help="the folders that grade wrote to, the newest assignment last")
    option("--out", default="term", metavar="FOLDER", help="to write to (default: term)")

    verb("inventory", lambda options: _tell(quiz.write(options.out)),
         "write the attention inventory for Moodle, Canvas and others", ("out", "folder to write to"))
    option = verb("gain", gained, "compare the results of the attention inventory before and after",
                  ("before", "the first results, as Moodle or Canvas gives them: a CSV file"),
                  ("after", "the second results"))
    option("--out", default="gain", metavar="FOLDER", help="to write to (default: gain)")
    return parser


def _limit(text):
    if not re.fullmatch(r"\d{1,5}(\.\d+)?", text) or float(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and 99,999")
    return float(text)


def _percent(text):
    if not re.fullmatch(r"\d{1,3}(\.\d+)?", text) or float(text) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 100")
    return float(text)


def _zone(text):
    try:
        return clock.zone(text)
    except clock.ClockError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def release(options):
    called = assignment.called_by(options.assignment)
    if not options.variant:
        if options.private:
            raise variants.VariantError("Details of your own come with --variant NAME as well.")
        if options.students:
            raise variants.VariantError("Students get notebooks of their own with --variant NAME as well.")
        if (listed := Path(options.out) / f"{called}-variants.json").exists():
            raise variants.VariantError(f"{listed} says that {options.out} holds a variant, and this would be the public "
                                        "version: say --variant NAME, or name another folder.")
        proof.prove(options.assignment)
        print(_points(options.assignment))
        print(f"Written: {assignment.release(options.assignment, options.out)}. Hand out this file.")
        return
    assignment.load(options.assignment)
    private = variants.read_private(options.private, options.assignment) if options.private else None
    listed, students = Path(options.out) / f"{called}-variants.json", []
    if options.students:
        before = variants.read(listed, options.assignment).students if listed.exists() else {}
        known_people = roster.beside(listed)
        old = roster.read(known_people) if known_people.exists() else []
        old = roster.joined(old, [roster.Person(name, variant=code) for name, code in before.items()])
        students = roster.label(roster.joined(roster.read(options.students, options.column), old), before)
    listed = variants.release(options.assignment, options.out, options.variant, [name for name, _ in students],
                              private)
    folder = listed.parent / called
    if students:
        codes = variants.read(listed, options.assignment).students
        people = [replace(person, variant=codes[name]) for name, person in students]
        added = roster.added(known_people) if known_people.exists() else {}
        roster.write(known_people, people, {roster.FOLDER: [name_for_people(name) for name, _ in students]} | {
            heading: [words.get(one.variant, "") for one in people] for heading, words in added.items()})
        if packed := exports.moodle_handout(listed.parent, called, students):
            print(f"For Moodle's \"Upload multiple feedback files in a zip\", which gives everybody their own: {packed}.")
    hand_out = (f"the {len(students)} notebooks in {folder}, a folder for each student" if students else
                folder / f"{called}.ipynb")
    class_list = f", {roster.beside(listed)} (who is who, and whose folder is which)" if students else ""
    print(_points(options.assignment))
    print(f"Hand out {hand_out}.")
    print(f"Keep for yourself: {listed} (for grade --variants){class_list} and the solutions in {folder}-solutions.")


def _points(name):
    task = assignment.load(name)
    items = ", ".join(f"{item.grade_id.removeprefix('test-')} {item.points:g}" for item in (*task.tests, *task.questions))
    return f"{task.points:g} points in all: {items}."


def grade(options):
    memory = int(options.memory * 2**30)
    limits = sandbox.Limits(options.cell_seconds, options.call_seconds, options.total_seconds, memory=memory,
                            together=2 * memory)
    results = batch.grade(options.assignment, options.submissions, options.out, workers=options.workers, limits=limits,
                          trusted=options.trusted, again=options.again, given=_given(options),
                          people=(people := _people(options)), teams=_teams(options), only=options.student,
                          count=options.count, zone=options.zone)
    _, about = batch.read(options.out)
    sheet = marks.write_sheet(results, options.out)
    class_list = None if about["only"] else roster.write_found(Path(options.out) / "roster.csv", results, people)
    print(batch.summary(results, about["only"]))
    if about["only"]:
        print(f"Pages and exports change when you make them again: python -m classroom feedback {options.out}")
        return
    for sentence in (*(f"Left out: {words}" for words in about["refused"]), *about["told"]):
        print(sentence)
    if others := about["others"]:
        print(f"{len(others)} graded into {options.out} before are not among these submissions, and so not in pages and "
              f"exports: {'; '.join(others)[:200]}. To have all, grade all together: only what is new is graded again.")
    if old := [name for name in ("class.html", "feedback", "copies.html") if (Path(options.out) / name).exists()]:
        print(f"{', '.join(old)}: of an earlier grading, until you make them again.")
    print(f"Who is who, with the platform's numbers and the names of the files: {class_list}.")
    waiting = sum(not (row["points"] or "").strip() for row in marks.read_csv(sheet))
    print((f"{waiting} to be marked by hand: python -m classroom mark {options.out}, or {sheet} in a spreadsheet. "
           if waiting else "Nothing waits to be marked by hand. ") + f"Then: python -m classroom feedback {options.out}"
          + (", which may run before as well, for class.html: run it again when all is marked." if waiting else ""))


def mark(options):
    if options.merge:
        entered, conflicts = marking.merge(options.out, options.merge)
        print(f"{entered} {'line' if entered == 1 else 'lines'} entered into {Path(options.out) / marks.SHEET}.",
              *(f"Two markers differ: {sentence}." for sentence in conflicts), sep="\n")
        return
    page = marking.Marking(options.out, options.by, options.names)
    with marking.Server(page) as server:
        print(f"{len(page.items)} to mark. Open this address in a browser on this machine: {server.address}\n"
              f"Every step is saved in {page.path}, and Ctrl+C here ends it. "
              f"Then: python -m classroom feedback {options.out}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nEnded; all is saved.")


def late(options):
    notes = dates.agree(options.out, options.due, options.penalty, options.most, options.grace, options.extend,
                        options.came, options.times, options.column)
    print(*notes, "Pages and exports have this when you make them again: "
          f"python -m classroom feedback {options.out}, then export.", sep="\n")


def feedback(options):
    if options.into and not options.format:
        raise exports.Mismatch("--into comes with --format moodle or --format canvas.")
    page, out = reports.write_pages(options.out), Path(options.out)
    exports.export(out, "csv")
    compare(options)
    print(f"For you: {page}, copies.html and grades.csv beside it. For students: {out / 'feedback'}.")
    if options.format:
        export(options)
    else:
        print(f"Then: python -m classroom export {out} --format canvas, or moodle.")


def compare(options):
    page, pairs, same, answers = copies.write_page(options.out)
    more = [f"{same} {'group' if same == 1 else 'groups'} with the same code"] * bool(same)
    more += [f"{answers} written {'answer' if answers == 1 else 'answers'} that several gave word for word"] * bool(answers)
    counts = ", ".join([f"{pairs} {'pair' if pairs == 1 else 'pairs'} to look at", *more])
    print(f"{counts}: {page}. No grade changes, and students do not see it.")


def export(options):
    paths, blank, notes = exports.export(options.out, options.format, options.into, options.column)
    _tell(paths, notes)
    if blank:
        print(f"{blank} {'grade is' if blank == 1 else 'grades are'} blank, because points are missing: python -m classroom "
              f"mark {options.out}, then export again (--format csv says why each is blank).")


def autograder(options):
    given = _given(options)
    number = gradescope.pack(options.assignment, options.out, given, _people(options), options.trusted)
    print(f"Upload {options.out} in Gradescope: Configure Autograder > Zip file upload.")
    if given and given.students:
        print(f"{number} of {len(given.students)} students are known there by their e-mail address; the others by the "
              "variant that their notebook carries.")


def _given(options):
    return variants.read(options.variants, options.assignment) if options.variants else None


def _teams(options):
    """Those of --roster, and those of the list beside the variants, which say the same or more."""
    given = teams.read(options.roster, options.column) if options.roster else []
    return [*given, *(teams.read(beside) if (beside := _beside(options)) else ())]


def _beside(options):
    """The list that release wrote beside that of the variants, or None."""
    beside = roster.beside(options.variants) if options.variants else None
    return beside if beside and beside.exists() else None


def _people(options):
    listed = roster.read(beside) if (beside := _beside(options)) else []
    return roster.joined(roster.read(options.roster, options.column), listed) if options.roster else listed


def whole_term(options):
    paths, notes = term.write_pages(options.graded, options.out)
    print(f"Open {paths[0]}; the same for a spreadsheet: {paths[1]}.", *notes[:10], sep="\n")
    if len(notes) > 10:
        print(f"{len(notes) - 10} more of these are on the page.")


def gained(options):
    _tell(*gain.write_page(options.before, options.after, options.out))


def _tell(paths, notes=()):
    print(f"Written: {', '.join(map(str, paths))}.", *notes, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
