"""One notebook, several people: who is in a team, and that everybody in it has its notebook, its variant and its grade.

A team is a line with several names in the list of students, or a column ``team``; or it is Moodle's own. Since 4.1 Moodle's
download has one folder for a group, called by its name and a number that is the group's and nobody's, or "Default group"
without a number (mod/assign/classes/downloader.php); who is in it says a column of the grading worksheet (gradingtable.php).
Before, it had a folder for each member with the same file in it, and the name of the group in front of theirs.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from classroom import collecting, names, roster, worksheets


@dataclass
class Team:
    """``name`` is "" where the list gives none; ``members``: a ``Person`` each. ``by_folder``: only a folder of this name
    makes it a team, since the column that it stands in may be about something else."""

    name: str
    members: list = field(default_factory=list)
    by_folder: bool = False


def read(path, given=()):
    """The list of ``Team`` in a list of students, those with a single member left out unless a folder may have their name.
    ``given``: as for `roster.read`."""
    teams = {}
    if Path(path).suffix.lower() == ".csv":
        rows = roster.people_in(path, given)
        moodle = worksheets.is_moodle([row for row, _ in rows])
        own = {names.words_of(person.name) for _, person in rows}
        for row, person in rows:
            for heading, value in row.items():
                listed = heading and heading.strip().casefold() == "team"
                name = (value or "").strip()
                if name and (listed or moodle and heading and names.words_of(name) not in own):
                    teams.setdefault((heading, name), Team(name, [], not listed)).members.append(person)
    else:
        for line in Path(path).read_text(encoding="utf-8-sig").splitlines():
            teams[line] = Team(line.partition(":")[0].strip() if ":" in line else "",
                               [roster.Person(name) for name in names.members(line)])
    return [team for team in teams.values() if len(team.members) > 1 or team.by_folder]


def shared(submissions, people, teams):
    """The submissions, where each member of a team that handed in has one, with the team's newest notebook; and {key of a
    submission: key of the first member's}. ``people``: the class, ``teams``: its ``Team`` list."""
    by_name, first = defaultdict(list), {}
    for one in submissions:
        by_name[names.words_of(one.student)].append(one)
    folders = [[one for one in by_name[names.words_of(team.name)] if names.MOODLE.match(one.folder) or not team.by_folder]
               if team.name else [] for team in teams]
    of_teams = {id(one) for folder in folders for one in folder}  # the number in their names is nobody's
    alone = [one for one in submissions if id(one) not in of_teams]
    matches = roster.match(alone, people) if people else []
    of_person = {id(match.person): one for match, one in zip(matches, alone, strict=False) if match.person}
    submissions, placed = list(submissions), set()
    for team, folder in zip(teams, folders, strict=True):
        mine = [person for member in team.members for person in _listed(member, people) if id(person) not in placed]
        theirs = [of_person[id(person)] for person in mine if id(person) in of_person]
        there = [one for one in [*theirs, *folder] if one.read]
        if not there or not mine or team.by_folder and not folder:
            continue
        placed |= {id(person) for person in mine}  # two lists may name one team
        newest, every = max(there, key=lambda one: one.modified), []
        submissions = [one for one in submissions if not any(one is other for other in [*theirs, *folder])]
        more = [note for note in [f"The newest of {len(there)} notebooks of the team counts: {newest.file}."]
                if len({one.digest for one in there}) > 1]
        for person in mine:
            moodle = (person.moodle, f"{person.name}_{person.moodle}_assignsubmission_file") if team.by_folder else ()
            own = of_person.get(id(person)) or collecting.Submission(person.name, *moodle)
            note = f"One notebook for the team {team.name}".rstrip() + f": {', '.join(one.name for one in mine)}."
            every.append(replace(newest, student=own.student, id=own.id, folder=own.folder, alike=own.alike,
                                 notes=[*newest.notes, note, *more]))
        submissions += every
        first |= dict.fromkeys((one.key for one in every), every[0].key)
    for same in _of_moodle([one for one in submissions if one.key not in first]):
        first |= dict.fromkeys((one.key for one in same), same[0].key)
        for one in same:
            one.notes.append("One notebook for the team: " + ", ".join(other.student for other in same) + ".")
    return sorted(submissions, key=lambda one: (one.student.casefold(), one.id)), first


def _listed(member, people):
    """The person of the class who is a member, in a list; of several with one name, who has the same number."""
    same = [one for one in people if names.words_of(one.name) == names.words_of(member.name)]
    return same if len(same) < 2 else [one for one in same if member.mark and member.mark in (
        one.mark, one.moodle, one.canvas, one.email, one.login)]


def _of_moodle(submissions):
    """Lists of submissions that are one team's in Moodle: the same file, behind the name of one group. In a download for
    teams every folder has one."""
    moodle = [one for one in submissions if names.platform_of(one.id, one.folder) == "moodle"]
    alike = defaultdict(list)
    for one in moodle:
        alike[one.folder.partition("-")[0], one.digest].append(one)
    grouped = [same for (_, digest), same in alike.items() if digest and len(same) > 1]
    return grouped if all("-" in one.folder for one in moodle) else []


def one_variant(submissions, whose, first):
    """What ``roster.who`` found, where a team is graded by the variant that its notebook carries, if that is a member's.
    ``first``: as ``shared`` gives it."""
    codes = defaultdict(set)
    for one, (person, *_) in zip(submissions, whose, strict=True):
        if one.key in first and person:
            codes[first[one.key]].add(person.variant)
    return [(person, one.variant, "") if one.variant and one.variant in codes[first.get(one.key)] else (person, code, flag)
            for one, (person, code, flag) in zip(submissions, whose, strict=True)]
