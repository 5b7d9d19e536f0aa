"""Write where the course lives: python -m scripts.address https://github.com/OWNER/NAME

The address goes into the first code cell of every lesson, solution and experiment, which clones it on Google Colab, into the
badges of README.md and into CITATION.cff. Until then the cell asks for it, and no page of the book says where to report
a mistake.
"""

import re
import sys
from urllib.parse import urlencode

import nbformat

from helpers.store.files import write_whole
from scripts import ROOT

CELL = '''# @title Only Google Colab needs this cell: it fetches the course
if "google.colab" in str(get_ipython()):
    !git clone -q --depth 1 "{address}" course
    %run course/helpers/page/colab.py'''
ASK = "{input('Address of the course: ')}"
SERVICES = {  # name: (address of the page, address of its badge), of lesson and owner/name
    "Open in Colab": ("https://colab.research.google.com/github/{name}/blob/main/{lesson}",
                      "https://colab.research.google.com/assets/colab-badge.svg"),
    "Open on Binder": ("https://mybinder.org/v2/gh/{name}/main?labpath={lesson}", "https://mybinder.org/badge_logo.svg"),
    "Open in Codespaces": ("https://codespaces.new/{name}", "https://github.com/codespaces/badge.svg"),
}
REPORTS = {  # what the foot of a page of the book asks -> the form in .github/ISSUE_TEMPLATE
    "Is something wrong on this page?": "mistake", "Was a right answer rejected?": "rejected",
    "Did the set-up fail?": "setup"}
TESTS = "https://github.com/{name}/actions/workflows/ci.yml"
BADGES = re.compile(r"(<!-- badges[^\n]*-->\n).*?(<!-- end of badges -->)", re.DOTALL)


def cell(name=None):
    """The first code cell of a lesson or solution; ``name`` is "owner/name" on GitHub, or None: then it asks."""
    return CELL.format(address=f"https://github.com/{name}" if name else ASK)


def known_name(root=ROOT):
    """The repository's "owner/name" as lesson 00 has it, or None."""
    first = root / "notebooks/00_start_here.ipynb"
    address = re.search(r'--depth 1 \\"https://github\.com/([^"\\]+)', first.read_text("utf-8")) if first.exists() else None
    return address[1] if address else None


def link(service, name, lesson="notebooks/00_start_here.ipynb"):
    """Where ``service`` (a key of SERVICES) opens a lesson of the repository ``name``: on Binder the learner's copy, which
    postBuild makes."""
    lesson = lesson.replace("notebooks/", "my_lessons/", 1) if "Binder" in service else lesson
    return SERVICES[service][0].format(name=name, lesson=lesson)


def report(form, name, **known):
    """Where somebody fills in a form of the repository ``name``; ``known``: what its fields, by their ids, begin with."""
    return f"https://github.com/{name}/issues/new?{urlencode({'template': f'{form}.yml', **known})}"


def book(name):
    """Where the book of the repository ``name`` is published, with a slash at its end."""
    owner, _, repository = name.partition("/")
    return f"https://{owner.lower()}.github.io/{repository}/"


def write_address(name, root=ROOT):
    """Write the repository's "owner/name" into every first code cell, README.md's badges and CITATION.cff."""
    folder = root / "notebooks"
    for path in sorted(p for kind in ("", "solutions/", "experiments/") for p in folder.glob(f"{kind}[0-9][0-9]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        next(c for c in notebook.cells if c.cell_type == "code").source = cell(name)
        nbformat.write(notebook, path)
    badges = [f"[![{service}]({picture.format(name=name)})]({link(service, name)})"
              for service, (_, picture) in SERVICES.items()]
    tests = TESTS.format(name=name)
    badges.append(f"[![Tests]({tests}/badge.svg)]({tests})")
    badges.append(f"[The book]({book(name)})")
    readme = root / "README.md"
    write_whole(readme, BADGES.sub(lambda m: m[1] + "\n".join(badges) + "\n" + m[2], readme.read_text("utf-8")))
    citation = root / "CITATION.cff"
    kept = re.sub(r"^(repository-code|url): .*\n", "", citation.read_text("utf-8"), flags=re.MULTILINE)
    write_whole(citation, f'{kept}repository-code: "https://github.com/{name}"\nurl: "{book(name)}"\n')


def main(arguments):
    address = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?", " ".join(arguments))
    if not address:
        print("Give the address of the public repository: python -m scripts.address https://github.com/OWNER/NAME"
              f"{', not ' + ' '.join(arguments) if arguments else ''}.", file=sys.stderr)
        return 1
    write_address(address[1])
    print(f"The lessons' first cells, README.md's badges and CITATION.cff now say {address[1]}: look at git diff, then "
          "commit.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
