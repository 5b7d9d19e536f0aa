"""Names of students, of their folders and of files: what they say, and what they become where others look for them."""

import hashlib
import re
import unicodedata

PLAIN = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss"})
WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)  # names that no file may have there
# What a platform calls a student's folder or, in a download without folders, each file:
MOODLE = re.compile(r"^(?P<name>.+?)(_(?P<id>[0-9]+))?_assignsubmission_(file|onlinetext)(_.*)?$", re.DOTALL)
MOODLE_ID = re.compile(r"_[0-9]+_assignsubmission_")
CANVAS = re.compile(r"^(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[0-9]+)_(?:(?P<file>[0-9]+)_.+|(?:text|link)(?:\.html)?)$",
                    re.DOTALL)
# What browsers and systems put behind a name: "w.ipynb.txt", "w.ipynb.json", "w.ipynb (1)", "w.ipynb - Copy".
ADDED = re.compile(r"(?<=\w)(\.(txt|json|bin|dms|download)|[ _-]?\(\d{1,4}\)| \d{1,3}| ?-? ?(cop(y|i[ae])|kopie))+$",
                   re.IGNORECASE)
TARS = (".tar", ".tar.gz", ".tgz")
REMEDIES = {  # how a name ends -> what to do
    r"\.(rar|7z|gz|bz2|tbz2?|xz|zst)$": "of packed files .zip, .tar and .tar.gz are read, so unpack it, or pack it as .zip",
    r"\.py$": "a script without a function that is asked for, so ask for the notebook, which ends in .ipynb",
    r"\.(pdf|html?|docx?|odt|rtf|md|png|jpe?g)$": "this shows a notebook at most, so ask for the one that ends in .ipynb"}

# ---------------------------------------------------------------- of students


def key_of(student, number="", alike=False):
    """The name of this student's result: ASCII, safe in a file system and a spreadsheet, always the same for the same
    student, and nobody else's. ``number``: the platform's; ``alike``: another's would differ in capitals only."""
    plain = _ascii(student) + (f"_{number}" if number else "")
    unique = hashlib.sha256(student.encode("utf-8", "replace")).hexdigest()[:8]
    clear = number or plain == student and re.search("[A-Za-z]{2}", plain) and not re.search(
        r"_\d+$|-[0-9a-f]{8}$", plain) and not WINDOWS.fullmatch(plain)
    return plain if clear and not alike else f"{plain}-{unique}"


def _ascii(student):
    letters = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    return re.sub(r"[^\w-]+", "_", letters).strip("_-")[:80] or "student"


def name_for_people(student, key=""):
    """A name of a folder or a page in which people find ``student``, with letters of all scripts, as different from others
    as the ``key``, which is a result's and stays as it is. Where that has all letters, it is this name; where it does not
    begin with them, it comes behind the name."""
    key = key or key_of(student)
    plain = unicodedata.normalize("NFKD", student.translate(PLAIN))
    letters = "".join(c for c in plain if unicodedata.category(c)[0] in "LNM" and not "\u0300" <= c <= "\u036f" or c in "_-"
                      or c.isspace() or c.isascii())
    words = re.sub(r"[^\w\u0900-\u0dff\u0e00-\u0fff-]+", "_", unicodedata.normalize("NFC", letters)).strip("_-")[:50]
    beginning = _ascii(student)
    if not key.startswith(beginning):  # such as a folder zw17 of somebody whose name is on the list
        return f"{words}-{key}" if words and len(key) < 40 else key
    end = key[len(beginning):]
    return f"{words}{end}" if words and end and words != beginning[:50] and len(end) < 40 else key


def page_of(result):
    """The name of the file of a student's page of feedback, in which a teacher finds the student."""
    return f"{name_for_people(result['student'], result['key'])}.html"


def words_of(name):
    """The words of a name in any order and without accents: "Müller, Zoë" and "Zoe Muller" agree."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    return tuple(sorted(re.findall(r"[^\W_]+", plain)))


def members(line):
    """The people in a line of a list of students: "Team 3: Ada Lovelace; Ben Okri" has two, and "Ada Lovelace" one."""
    people = line.partition(":")[2] or line if ";" in line else line
    return [name.strip() for name in people.split(";") if name.strip()]


# ---------------------------------------------------------------- of folders and files


def by_platform(name):
    """What a platform says in the name of a folder or file, as a match with ``name`` and ``id``, or None."""
    return MOODLE.match(name) or CANVAS.match(name)


def platform_of(number, folder):
    """"moodle" or "canvas" where the name of a student's folder has the platform's number, else ""."""
    if not number:
        return ""
    return "moodle" if MOODLE.match(folder) else "canvas" if CANVAS.match(folder) else ""


def plain_name(name):
    """A name in one form of Unicode. Characters that move a terminal's cursor or turn the text around, and bytes that are
    not UTF-8, become their numbers: two names stay two."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in unicodedata.normalize("NFC", name))


def short(name):
    """A name no longer than those of files: in a zip it may have 65,000 letters."""
    return name if len(name) <= 255 else f"{name[:240]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def kind_of(name):
    """".ipynb", ".py" or ".zip", which a .tar may be as well, by the end of a file's name, whatever was put behind it;
    ".json" where that is all; else ""."""
    plain = _without_added(name).lower()
    if plain.endswith(TARS):
        return ".zip"
    return next((end for end in (".ipynb", ".zip", ".py") if plain.endswith(end)), ".json" * name.lower().endswith(".json"))


def _without_added(name):
    return name[:-60] + ADDED.sub("", name[-60:])


def stem_of(name):
    """The name of a file without its ending and what was put behind that."""
    plain = _without_added(name) if kind_of(name) in (".ipynb", ".zip", ".py") else name
    ending = next((end for end in TARS if plain.lower().endswith(end)), "." + plain.rpartition(".")[2])
    return plain.removesuffix(plain[-len(ending):]) or plain


def numbered(name):
    """(name, number) of a file that may be called like another and get a number for it, as ``work.ipynb`` and then
    ``work-2.ipynb`` or ``work (2).ipynb``."""
    stem, added = stem_of(name), re.search(r"\(([0-9]{1,4})\)$", name)
    parts = re.fullmatch(r"(.+?)(?:-([0-9]{1,4})| ?\(([0-9]{1,4})\))", stem, re.DOTALL)
    return (parts[1], int(parts[2] or parts[3])) if parts else (stem, int(added[1]) if added else 0)


def remedies(names):
    """Sentences on what to do with files that are not notebooks."""
    examples = {words: name for name in names for end, words in REMEDIES.items()
                if re.search(end, _without_added(name), re.IGNORECASE)}
    return "".join(f" {name}: {words}." for words, name in examples.items())
