"""Which column of a platform's own file is which, in any language: by its place and by what stands in it.

Moodle writes its grading worksheet in the language of whoever downloads it, always in one order: the identifier
("Participant 12"), the full name, addresses, status, group where groups hand in, grade, maximum grade, last modified
(submission), last modified (grade), as in mod/assign/gradingtable.php. Canvas' headings are English in every language, its
numbers are not (gradebook_exporter.rb).
"""

import re

IDENTIFIER = re.compile(r"([^\d,;@]*[^\W\d_][^\d,;@]*)(\d+)")  # in German "Teilnehmer/in12", in Chinese "参与者12"
DECIMAL = re.compile(r"\d+([.,]\d+)?")


def columns(rows):
    """The headings of the columns that have one."""
    return [heading for heading in (rows[0] if rows else []) if heading]


def is_moodle(rows):
    """Is it Moodle's grading worksheet: does each line begin with the same word and a number of its own?"""
    identifiers = [IDENTIFIER.fullmatch(cell) for cell in (cells(rows, columns(rows)[0]) if rows else [])]
    if not identifiers or not all(identifiers):
        return False
    return len({one[1] for one in identifiers}) == 1 and len({one[2] for one in identifiers}) == len(identifiers)


def cells(rows, heading):
    """What stands in a column, without what is blank."""
    return [value for row in rows if (value := (row[heading] or "").strip())]


def address(rows):
    """The heading of the first column of e-mail addresses, or None."""
    for heading in columns(rows):
        some = cells(rows, heading)
        if some and all(re.fullmatch(r"\S+@\S+", cell) for cell in some):
            return heading
    return None


def names(rows):
    """The headings of the columns that a name is in: in Moodle's worksheet the second, elsewhere where there are e-mail
    addresses one or two at the beginning, of letters alone. None where that is not clear."""
    headings = columns(rows)
    if is_moodle(rows):
        second = cells(rows, headings[1]) if len(headings) > 1 else []
        blind = len(set(second)) < len(rows) / 2  # then it is the status, which is the same for many
        return [] if blind else headings[1:2]
    words = [bool(some := cells(rows, h)) and not any(re.search(r"[\d@]", one) for one in some) for h in headings]
    first = words.index(False) if False in words else len(words)
    return headings[:first] if first <= 2 and address(rows) else []


def grade(rows):
    """The headings of Moodle's columns for the grade and the highest grade, which is one number in all lines and stands
    behind it; None where there is no such number."""
    headings = columns(rows) if is_moodle(rows) else []
    for before, heading in reversed([*zip(headings[1:], headings[2:], strict=False)]):
        some = cells(rows, heading)
        if len(set(some)) == 1 and len(some) == len(rows) and DECIMAL.fullmatch(some[0]):
            return before, heading
    return None


def handed_in(rows, date):
    """The heading of Moodle's column "Last modified (submission)", or None: the first of two columns of dates behind the
    grade. ``date``: a function that returns whether a text is one; "-" stands where there is none."""
    headings = columns(rows)
    if english := [h for h in headings if re.fullmatch(r"last modified \(submission\)", h, re.IGNORECASE)]:
        return english[0]
    behind = headings.index(grade(rows)[1]) + 1 if grade(rows) else 2
    dates = [h for h in headings[behind:] if (some := cells(rows, h))
             and sum(value == "-" or date(value) for value in some) > len(some) / 2]
    return dates[0] if len(dates) > 1 else None
