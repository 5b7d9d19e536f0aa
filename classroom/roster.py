"""Who is who: the list of a class, and which person on it a submission is of.

The platform's own number decides first, then an e-mail address or a login, then the name. A name that may be two people's,
or a person who would have two submissions, is nobody's: it is said and never guessed.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import astuple, dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from classroom import Problem, first_few, marks, worksheets
from classroom.names import key_of, members, name_for_people, platform_of, words_of
from helpers.store.files import write_whole

COLUMNS = ("name", "moodle id", "canvas id", "e-mail", "login", "variant")
# What platforms call these columns in English; in other languages worksheets.py finds them. A plain `id` may be of either.
KNOWN_AS = {"moodle id": ("moodle id", "identifier", "id"), "canvas id": ("canvas id", "id"),
            "e-mail": ("e-mail", "email", "email address", "e-mail address", "mail"),
            "login": ("login", "sis login id", "username", "user name", "sis user id", "sis_id", "id number",
                      "idnumber", "student_id", "student id"),
            "variant": ("variant",)}
NAMES = (("name",), ("full name",), ("student",), ("first name", "last name"), ("first name", "surname"),
         ("firstname", "lastname"))  # the parts of a name
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
APART = re.compile(r"[\s,;/_]+")  # between the words of a name
STRANGE = re.compile(r"[@<>{}\[\]|=\\:;\"*?#$%^~!\ufffd]")  # in no name, but in e-mails, data and damaged text
NOBODY = (("points", "possible"), ("student", "test"))  # lines of a gradebook of Canvas
FOLDER = "folder"  # the column in which release says whose folder is which
MOST_TOLD = 20
UNCERTAIN = ("It cannot be told for certain whose notebook this is, and so by which variant to grade it: the teacher may "
             "name its folder after the student as the list of students does, with the number in brackets where two have "
             "one name, or give grade --roster a list with numbers or addresses, and grade again.")


class RosterError(Problem):
    """What is wrong with a list of students: everything that is, in one go."""


@dataclass
class Person:
    """One of a class. ``moodle``: Moodle's number, which is another in every assignment; ``canvas``: Canvas' number;
    ``variant``: the code of the variant that was given out. "" where it is not known."""

    name: str
    moodle: str = ""
    canvas: str = ""
    email: str = ""
    login: str = ""
    variant: str = ""

    @property
    def mark(self):
        """What tells this person from another one of the same name, or ""."""
        return self.canvas or self.moodle or self.email or self.login

    @property
    def words(self):
        return f"{self.name} ({self.mark})" if self.mark else self.name


@dataclass
class Match:
    """Whose a submission is: ``person`` or None; ``rank``: how sure that is, by a name (0), a login (1), a number (2), or a
    number and a name that agree (3); ``why`` there is none, as a part of a sentence; ``refused``: more than one person it
    might be."""

    person: Person | None = None
    rank: int = 0
    why: str = ""
    refused: bool = False


def keys_of(name):
    """The ways in which platforms write a name, without spaces, punctuation, accents and case: as it is, with each word
    first, and with the words in alphabetical order. Two names with a key in common may be one person's."""
    words = _parts(name)
    turned = ["".join(words[i:] + words[:i]) for i in range(len(words[:6]))]
    return {*turned, " ".join(sorted(words))} - {""}


def _parts(name):
    """The words of a name, as ``keys_of`` writes them."""
    return [*filter(None, map(_letters, APART.split(name)))]


def _letters(word):
    """Letters and digits alone. Only accents go: in other scripts such marks are vowels."""
    word = unicodedata.normalize("NFKD", word.replace("\u00b4", "'").casefold().translate(PLAIN))
    return "".join(c for c in word if unicodedata.category(c)[0] in "LNM" and not "\u0300" <= c <= "\u036f")


def read(path, given=()):
    """The people in a list: a text with a name in each line, or a CSV of Moodle, of Canvas, or as ``write`` writes it.
    ``given``: what the teacher says of its columns, each "WHAT=HEADING". Everything that is odd in it is told at once.
    Raises RosterError."""
    path = Path(path)
    try:
        if path.suffix.lower() == ".csv":
            people = [person for _, person in people_in(path, given)]
        else:
            people = [Person(" ".join(name.split())) for line in path.read_text(encoding="utf-8-sig").splitlines()
                      for name in members(line)]
    except marks.SheetError as error:
        raise RosterError(f"{path} cannot be read as a list of students: {error}") from None
    except UnicodeDecodeError:
        raise RosterError(f"{path} is not a list of names: save it as text or CSV, in UTF-8.") from None
    people = [one for one in people if one.name and words_of(one.name) not in NOBODY]
    if not people:
        raise RosterError(f"{path} holds no names: write one student in each line.")
    if odd := list(filter(None, map(_strange, people))):
        raise RosterError(f"{path} is not a list of names: {first_few(odd, MOST_TOLD)}. Give a text in UTF-8 with one name "
                          "in each line, or a CSV with a column of names.")
    if twice := _twice(people):
        raise RosterError(f"{path}: {first_few(twice, MOST_TOLD)}. Correct the list, and give the command once more.")
    return people


def _strange(person):
    """What is odd in a name, in words, or ""."""
    if sign := STRANGE.search(person.name):
        return f"{person.name[:60]!r} has {sign[0]!r} in it"
    if not person.name.isprintable():
        return f"{ascii(person.name[:60])} has a character in it that is not seen"
    return "" if keys_of(person.name) else f"{person.name[:60]!r} has no letters"


def _twice(people):
    """What stands twice in a list, in words: numbers, addresses, and names that nothing tells apart."""
    words = []
    for what in ("moodle", "canvas", "email", "variant"):
        owners = defaultdict(list)
        for one in people:
            owners[getattr(one, what)].append(one.name)
        words += [f"{value} stands twice, for {first_few(names, MOST_TOLD)}" for value, names in owners.items()
                  if value and len(names) > 1]
    alike = defaultdict(list)
    for one in people:
        alike[words_of(one.name)].append(one)
    return words + [f"{same[0].name} stands twice: tell the two apart, such as by a number" for same in alike.values()
                    if len({one.mark for one in same}) < len(same)]


def people_in(path, given=(), nameless=False):
    """The lines of a CSV, each with its ``Person``: pairs (row, person). ``given``: as for `read`; ``nameless``: whether it
    may have no names. Raises RosterError, and SheetError where it is no CSV."""
    rows = marks.read_csv(path)
    columns = _columns(rows, path, given, nameless)
    return [(row, _person(row, columns)) for row in rows]


def _columns(rows, path, given, nameless):
    """{what of COLUMNS: the headings of the columns in which it may be}. Raises RosterError."""
    headings = {heading.strip().casefold(): heading for heading in worksheets.columns(rows)}
    columns = {what: [headings[word] for word in words if word in headings] for what, words in KNOWN_AS.items()}
    parts = next((names for names in NAMES if all(name in headings for name in names)), ())
    columns["name"] = [headings[name] for name in parts] or worksheets.names(rows)
    if headings.keys() & {"student", "lastname"} and not headings.keys() & {"identifier", "moodle id"}:  # Canvas' gradebook
        columns["moodle id"] = []
    if worksheets.is_moodle(rows):
        columns["moodle id"] = columns["moodle id"][:1] or [next(iter(rows[0]))]
    if "identifier" in headings or worksheets.is_moodle(rows):
        columns["canvas id"] = [headings["canvas id"]] if "canvas id" in headings else []
    if not columns["e-mail"] and (address := worksheets.address(rows)):
        columns["e-mail"] = [address]
    named = [pair.partition("=") for pair in given]
    for what, _, heading in named:
        if what not in COLUMNS or heading.strip().casefold() not in headings:
            raise RosterError(f"--column '{what}={heading}' does not fit {path}: say one of {', '.join(COLUMNS)}, =, and a "
                              f"heading of the file, which has {'; '.join(headings.values())[:300]}.")
    for what in {what for what, *_ in named}:
        columns[what] = [headings[heading.strip().casefold()] for other, _, heading in named if other == what]
    if not columns["name"] and not nameless:
        raise RosterError(f"{path} has no column of names that is known. Say which it is, such as --column name='Full name' "
                          f"(twice for a first and a family name); it has {'; '.join(headings.values())[:300]}.")
    return columns


def _person(row, columns):
    cell = {what: [" ".join((row[heading] or "").split()) for heading in headings] for what, headings in columns.items()}
    values = {what: next(filter(None, cells), "") for what, cells in cell.items()}
    for what in ("moodle id", "canvas id"):  # "Participant 12", and what a spreadsheet makes of a number
        digits = re.fullmatch(r"(?:.*[^\d.,])?(\d+)(?:[.,]0+)?", values[what])
        values[what] = digits[1] if digits else ""
    return Person(marks._unguarded(" ".join(filter(None, cell["name"]))),
                  *(marks._unguarded(values[what]) for what in ("moodle id", "canvas id")), values["e-mail"].casefold(),
                  *(marks._unguarded(values[what]) for what in ("login", "variant")))


def write(path, people, more=None):
    """Write the list of a class as CSV, to be read by ``read``. ``more``: further columns, heading -> a word for each of
    the ``people``."""
    more = more or {}
    lines = [(*COLUMNS, *more), *((*astuple(one), *words) for one, *words in zip(people, *more.values(), strict=True))]
    write_whole(Path(path), "\ufeff" + marks.csv_text(lines))
    return Path(path)


def added(path):
    """The columns that a teacher added to the list that ``release`` wrote: heading -> code of a variant -> what stands
    there."""
    lines = people_in(path)
    return {heading: {person.variant: marks._unguarded(row[heading] or "") for row, person in lines}
            for heading in worksheets.columns([row for row, _ in lines])
            if heading.strip().casefold() not in (*COLUMNS, FOLDER)}


def write_found(path, results, people):
    """Write which number, name and file ``grade`` took for whose: the ``people`` of the list with what the platform says
    of them, or without a list all who handed in. Those not matched are left out of it."""
    lines, listed, there = [], people or any(result["person"] for result in results), set()
    for result in results:
        platform = platform_of(result["id"], result["folder"])
        if one := Person(**result["person"]) if result["person"] else None if listed else Person(result["student"]):
            there.add(astuple(one))
            lines.append((replace(one, **{platform: result["id"]}) if platform else one, result["file"]))
    lines += [(one, "") for one in people if astuple(one) not in there]
    return write(path, [one for one, _ in lines], {"handed in": [file for _, file in lines]})


def beside(listed):
    """Where the list of a class lies: beside the list of variants."""
    return Path(str(listed).removesuffix("-variants.json") + "-roster.csv")


def label(people, before=None):
    """The people of a class with names that nobody else has: a list of (name, person). ``before``: {name: variant} of those
    who have one already, who keep their name. Two of one name get their number behind it."""
    names_before = {variant: name for name, variant in (before or {}).items()}
    names = {id(one): names_before[one.variant] for one in people if one.variant in names_before}
    counts = Counter(words_of(one.name) for one in people)
    taken = set(map(words_of, names.values()))
    for one in people:
        if id(one) not in names:
            words = words_of(one.name)
            names[id(one)] = one.words if counts[words] > 1 or words in taken else one.name
    return [(names[id(one)], one) for one in people]


def joined(people, before):
    """The people of a new list, with the variants of those who are on the list of ``before``; and who is only there. One is
    the same person by a number, an e-mail address, a login, or a name that both lists have once. Moodle's numbers are others
    in every assignment, so there the names have to agree as well."""
    codes = {one.variant for one in people if one.variant}
    left = [one for one in before if one.variant not in codes]
    for what in ("canvas", "email", "login", "moodle", "name"):
        new, old = ([(one, {words_of(one.name)} if what == "name" else {getattr(one, what)} - {""}) for one in side]
                    for side in ([one for one in people if not one.variant], left))
        for one, same in alone(new, old):
            if what != "moodle" or keys_of(one.name) & keys_of(same.name):
                left = [other for other in left if other is not same]
                for other in ("moodle", "canvas", "email", "login", "variant"):
                    setattr(one, other, getattr(one, other) or getattr(same, other))
    return [*people, *left]


def alone(ours, theirs):
    """Pairs (one of ours, one of theirs) who have a word in common and share none with anybody else. ``ours`` and
    ``theirs``: lists of pairs of somebody and a set of words."""
    owners, claims = defaultdict(set), defaultdict(list)
    for number, (_, words) in enumerate(theirs):
        for word in words:
            owners[word].add(number)
    for one, words in ours:
        fitting = set().union(*(owners[word] for word in words))
        for number in fitting:
            claims[number].append((one, len(fitting)))
    return [(some[0][0], theirs[number][0]) for number, some in claims.items() if len(some) == 1 and some[0][1] == 1]


def who(submissions, people, given):
    """For each submission whose it is: (``Person`` or None, the code of the variant by which to grade it or None, a flag);
    and sentences for the teacher. ``given``: the ``Variants``, or None. Without a list of people and without variants for
    each student nothing is matched."""
    codes = given.students if given else {}
    for one in people:
        one.variant = one.variant if one.variant in codes.values() else ""
    people = joined(people, [Person(name, variant=code) for name, code in codes.items()])
    if not people:
        return [(None, *(given.find("", one.variant) if given else ("", ""))) for one in submissions], []
    owners = {one.variant: one for one in people if one.variant}
    folders = {folder: owners[code] for name, code in codes.items()  # as release calls them, and as it called them before
               for key in [key_of(name)] for folder in (key, name_for_people(name, key))}
    matches = match(submissions, people, folders)
    carried = Counter(one.variant for one, mine in zip(submissions, matches, strict=True) if not mine.person)
    claimed = {mine.person.variant for mine in matches if mine.person}
    wrong_list, whose = _most(matches), []
    for submission, mine in zip(submissions, matches, strict=True):
        code, flag = "", ""
        if given:
            free = not mine.refused and submission.variant not in claimed and carried[submission.variant] == 1
            code, flag = given.find(submission.student, submission.variant, mine.person.variant if mine.person else "", free)
        if codes and not code and not submission.problem and (mine.refused or submission.variant in owners):
            submission.problem, submission.status = UNCERTAIN, "refused"  # which its student may read
        if not mine.person and (mine.refused or not codes):
            flag = f"not matched to the list of students: {mine.why}"
        if not mine.person and wrong_list and (code or not codes):
            flag = ""
        whose.append((mine.person, code, flag))
    return whose, told(matches, submissions, people)


def _most(matches):
    """Are most submissions of nobody on the list, so that it is that of another class?"""
    return sum(not one.person for one in matches) > max(3, len(matches) / 2)


def match(submissions, people, folders=None):
    """The ``Match`` of each submission: a list as long as ``submissions``. ``folders``: {name of a folder that was handed
    out: person}."""
    numbers, exact, named = defaultdict(list), defaultdict(list), defaultdict(list)
    for one in people:
        numbers["moodle", one.moodle].append(one)
        numbers["canvas", one.canvas].append(one)
        for word in {one.email, one.login, one.email.partition("@")[0], one.words} - {"", one.name}:
            exact[word.casefold()].append(one)
        for key in keys_of(one.name):
            named[key].append(one)
    for folder, one in (folders or {}).items():
        exact[folder.casefold()] = [one]
    counts = Counter(submission.student for submission in submissions)
    matches = [_match(submission, numbers, exact, named, counts[submission.student] > 1) for submission in submissions]
    _one_each(matches, submissions)
    return matches


def _match(submission, numbers, exact, named, blind):
    """``blind``: whether others' folders have the same name, such as "Participant"."""
    platform = platform_of(submission.id, submission.folder)
    by_name = _by_name(submission.student, platform, named)
    if platform and len(owners := numbers[platform, submission.id]) == 1:
        person = owners[0]
        if by_name and not any(one is person for one in by_name):
            return Match(why=f"the number {submission.id} is {person.name}'s, and the name {by_name[0].words}'s",
                         refused=True)
        if platform == "moodle" and not by_name and not blind:
            return Match(why=f"the number {submission.id} is {person.name}'s, and nobody is called {submission.student}: if "
                             "that is a group, give grade --roster Moodle's grading worksheet", refused=True)
        return Match(person, 3 if by_name else 2)
    some = [] if platform else exact.get(submission.student.casefold(), [])
    if len(some) == 1 and not any(one is not some[0] for one in by_name):
        return Match(some[0], 1)
    if len(by_name) == 1:
        return Match(by_name[0])
    if by_name or len(some) > 1:
        both = by_name or some
        names = first_few([one.words for one in both], MOST_TOLD)
        return Match(why=f"{len(both)} on the list may be called so: {names}", refused=True)
    near = get_close_matches("".join(sorted(keys_of(submission.student))[-1:]), named, 1, 0.8)
    return Match(why=f"nobody called {submission.student} is on the list"
                     + (f"; {named[near[0]][0].name} comes nearest" if near else ""))


def _by_name(name, platform, named):
    """The people with a name. Moodle puts the name of a group in front, and a hyphen."""
    names = [name]
    if platform == "moodle":
        names += [name[place.end():] for place in re.finditer("-", name)]
    people = ({id(person): person for key in keys_of(one) for person in named.get(key, ())} for one in names)
    return list(next(filter(None, people), {}).values())


def _one_each(matches, submissions):
    """Nobody has two submissions: what is surer counts, and of equals none."""
    claims = defaultdict(list)
    for number, one in enumerate(matches):
        if one.person:
            claims[id(one.person)].append(number)
    for some in claims.values():
        most = max(matches[number].rank for number in some)
        surest = [number for number in some if matches[number].rank == most]
        for number in some:
            if surest != [number]:
                others = [submissions[other].file or submissions[other].student for other in some if other != number]
                matches[number] = Match(why=f"{matches[number].person.words} would have more than one submission, this one "
                                            f"and {first_few(others, MOST_TOLD)[:200]}", refused=True)


def called(result):
    """What the student of a result is called: the key of the result, the name, the platform's number, and what the list of
    students has."""
    person = result.get("person") or {}
    words = [result["key"], result["student"], result["id"], *(person.get(name) for name in ("name", "email", "login"))]
    return [word for word in words if word]


def find(who, people):
    """The keys of those whom a teacher may mean by ``who``. ``people``: pairs of a key and what its student is called. A
    word that is exactly one's own counts before a name that is like it, and that before a part of a name, such as the
    family's."""
    exact = [key for key, words in people if who.casefold() in (word.casefold() for word in words)]
    like = exact or [key for key, words in people if any(keys_of(who) & keys_of(word) for word in words)]
    parts = {*_parts(who)}
    return like or [key for key, words in people if parts and any(parts <= {*_parts(word)} for word in words)]


def which(who, keys):
    """Words that ask which of several a teacher means."""
    return f"{who} may be {' or '.join(keys[:10])}: say which, by one of these."


def told(matches, submissions, people):
    """Sentences for the teacher: who cannot be matched, in one line, and who handed in nothing."""
    lost = [(submission.student, one.why) for one, submission in zip(matches, submissions, strict=True) if not one.person]
    sentences = []
    if _most(matches):
        sentences.append(f"{len(lost)} of {len(matches)} submissions are of nobody on the list of students, such as "
                         f"{lost[0][0]} ({lost[0][1]}): is it the list of this class?")
    elif lost:
        words = first_few([f"{name} ({why})" for name, why in lost], MOST_TOLD)
        sentences.append(f"Not matched to the list of students: {words}.")
    there = {id(one.person) for one in matches}
    if not _most(matches) and (missing := [name for name, one in label(people) if id(one) not in there]):
        sentences.append(f"{len(missing)} on the list of students are not among the submissions"
                         f"{', apart from those not matched' if lost else ''}: {'; '.join(missing)}.")
    return sentences
