"""Graded work for a class: release, collect, grade safely, return feedback. The teacher's page is docs/teaching.md.

A submission runs in a sandbox and only gives values back; they are judged outside, by the course's checkers.

    notebook.py    read whatever a student hands in         worker.py      runs in the sandbox: cells, then calls
    code_cells.py  the code in it                           wire.py        values in and out, never pickle
    flags.py       what a teacher should look at            sandbox.py     bubblewrap, limits, time-outs
    assignment.py  what an assignment asks; release it      variants.py    other details for a term or a student
    collecting.py  find each student's newest notebook      names.py       of students, folders and files
    zips.py        zips and tars that nobody can trust      roster.py      who is who: numbers, addresses, names
    grading.py     one file in, one result out              session.py     its functions, called from outside
    batch.py       a whole class, resumable                 teams.py       one notebook of several people
    marks.py       the sheet to mark, points, grades        marking.py     a page in the browser, to mark on
    attempts.py    several hand-ins, the last or the best   copies.py      who hands in the same
    dates.py       due, late, extensions                    clock.py       one time zone for an assignment
    worksheets.py  a platform's columns, any language       overview.py    what the class did, in numbers
    reports.py     pages, by templates/ (Jinja2)            term.py        one page over several assignments
    files.py       values in files of JSON
    exports.py     CSV, Canvas, Moodle                      gradescope.py  an autograder to upload
    own.py         a teacher's own notebook, its tests      proof.py       whether it is sound
    quiz.py        the inventory, for platforms             gain.py        what a class has gained in it
    trial.py       a dry run with imaginary students
    tasks/         what the functions of each assignment have to do
"""

import sys

PATIENCE = 3  # seconds after which a bar shows how far it is


class Problem(Exception):
    """One sentence for the teacher: what is wrong, and what to do."""


def first_few(words, most=10):
    """Words in a row, and how many more there are than ``most``."""
    return "; ".join(words[:most]) + (f"; and {len(words) - most} more" if len(words) > most else "")


def progress_bar(words, total, shown=True):
    """``with progress_bar(words, total) as bar``, and ``bar.update()`` after each of ``total``: how far it is, where that
    takes more than a few seconds; seldom where nobody watches a terminal. ``shown``: whether anything is said."""
    from tqdm import tqdm
    return tqdm(desc=words, total=total, delay=PATIENCE, disable=not shown, mininterval=0.1 if sys.stderr.isatty() else 60)
