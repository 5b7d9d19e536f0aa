"""What `make VERB` does once .venv is ready: python -m scripts.verbs VERB ..., which scripts/setup.py calls."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts import handout
from scripts.setup import ROOT, run, say

PROSE = ("README.md", "CONTRIBUTING.md", "classroom", "data", "docs", "helpers", "notebooks", "scripts",
         "tests")  # whose spelling is checked
# With torch's default number of threads, kernels that share two cores take ten times as long.
QUIET = {"OMP_NUM_THREADS": "1", "ATTENTION_COURSE_PROGRESS": "off"}
NO_TESTS = 5  # the exit status of pytest where all tests were left out
TESTED = ((r"notebooks/.*\.ipynb", "hygiene"), ("data/course.toml", "course"), (r".*\.md", "reference"),
          (r"helpers/checks/.*\.py", "hints"), (r"helpers/(checks/)?[a-z]\w*\.py", "mistakes"),
          (r"helpers/[a-z]\w*\.py", "answers"), (r"helpers/sealed/.*\.py", "sealed"), (r"helpers/store/gguf\.py", "tokens"),
          (r"helpers/page/(numbers|predictions)\.py", "progress"), (r"helpers/page/(pictures|sheet|show)\.py", "drawing"),
          (r"classroom/tasks/.*\.py", "assignments"))  # files, and what tests all of them
MODULES = {"handout": "scripts.handout", "execute": "scripts.execute", "book": "scripts.book", "slides": "scripts.slides",
           "stability": "scripts.stability", "experiments": "scripts.experiments", "classroom": "classroom"}


def git(*words):
    """The lines that git prints; none where there is no git or no repository."""
    if not shutil.which("git"):
        return []
    return subprocess.run(["git", "-c", "core.quotePath=off", *words], capture_output=True,
                          encoding="utf-8", errors="replace").stdout.splitlines()


def own_notebooks():
    """The notebooks that are the course's own: they are in git's last commit, and as they were committed.

    What stands in a trusted notebook's outputs runs as soon as it is opened, so a notebook that came from elsewhere must
    not be among them, whatever its name. Without git, as in a course from a zip file, nothing tells a lesson from a file
    that took its place, so there none is; what a cell shows when it is run is live in any case.
    """
    committed = {path for path in git("ls-tree", "-r", "--name-only", "HEAD", "notebooks") if path.endswith(".ipynb")}
    return sorted(committed - {*git("diff", "--name-only", "--no-renames", "--relative", "HEAD", "--", "notebooks")})


LOOK = ("--LabApp.custom_css=True",  # helpers/page/lab/custom.css; JupyterLab has no setting for the folder that it is in
        f"--ServerApp.tornado_settings={ {'static_custom_path': [str(Path(ROOT) / 'helpers' / 'page' / 'lab')]} }")


def lab(arguments):
    """Open the learner's own copies in JupyterLab, which it makes and brings up to date first; with --finished the lessons
    as they are stored, with their results."""
    starts, files = ["notebooks/00_start_here.ipynb"], own_notebooks()
    if "--finished" in arguments:
        arguments = [word for word in arguments if word != "--finished"]
    else:
        try:
            copies = handout.fill()
            files += [copies[name] for name in sorted(copies) if f"notebooks/{name}" in files]  # and what was copied of them
            starts.insert(0, f"{handout.FOLDER}/00_start_here.ipynb")
        except (OSError, ValueError) as error:
            say(f"{handout.trouble(error, handout.FOLDER)} So the finished lessons open, in notebooks/.")
    # An untrusted notebook shows no scripts: the attention views would stay empty.
    if not files:
        say("Only a clone made with git tells which notebooks are the course's own, so none was marked as trusted: "
            "interactive views stay empty until their cells are run.")
    elif run("-m", "jupyter", "trust", "--log-level=ERROR", *files, stdout=subprocess.DEVNULL):
        say("The notebooks could not be marked as trusted: interactive views stay empty until their cells are run.")
    options = [f"--ServerApp.root_dir={ROOT}", *LOOK, *[start for start in starts if Path(start).exists()][:1]]
    if getattr(os, "geteuid", lambda: 1)() == 0:
        options.append("--allow-root")  # in a container
    say("Opening JupyterLab; stop it with Ctrl-C here.")
    return run("-m", "jupyterlab", *options, *arguments)


def lint(arguments):
    """ruff and codespell, on everything or on the paths given."""
    say("Checking the code with ruff and the spelling with codespell ...")
    if run("-m", "ruff", "check", *arguments or ["."]):
        return 1
    if run("-m", "codespell_lib", *[path for path in arguments if os.path.exists(path)] or PROSE):
        say("Correct these words; if one is right, add it to pyproject.toml, [tool.codespell].")
        return 1
    return 0


def pytest(*arguments):
    """Two workers: a third, on two cores, makes nothing faster and costs a tenth more; each imports torch and all tests."""
    return run("-m", "pytest", "-n", "2", "--dist", "loadfile", *arguments, **QUIET)


def chosen(arguments, *default):
    """The arguments, and the default paths if they name no path."""
    return [*([] if any(os.path.exists(a.split("::")[0]) for a in arguments) else default), *arguments]


def branch_point():
    """Where the branch left origin/main, or main; the last commit where there is neither."""
    return (git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main") or ["HEAD"])[0]


def changed(since):
    """The files that differ from a commit, those taken away and those never committed too."""
    return sorted({*git("diff", "--name-only", "--no-renames", "--relative", since),
                   *git("ls-files", "--others", "--exclude-standard")})


def nearest(files):
    """The test files that are named after these files: test_attention.py after helpers/attention.py, test_lesson05.py after
    notebooks/05_scaling.ipynb and helpers/checks/lesson05.py; those among them; and what TESTED names."""
    names = {re.sub(r"^(\d\d)_.*", r"lesson\1", Path(file).stem.removeprefix("test_")) for file in files
             if file.endswith((".py", ".ipynb"))}
    names |= {name for pattern, name in TESTED if any(re.fullmatch(pattern, file) for file in files)}
    return [str(path) for path in sorted(Path("tests").rglob("test_*.py"))
            if path.stem.removeprefix("test_").removeprefix("classroom_") in names]


def check(arguments):
    """After a change: what tests it by name, or the branch where all is committed; then the other quick tests, then the
    notebooks that the branch changed."""
    on_branch = changed(branch_point())
    near = [] if arguments else nearest(changed("HEAD")) or nearest(on_branch)
    shown = {"notebooks/figures": "notebooks", "helpers/checks": "notebooks/solutions"}  # what runs in which notebooks
    modules = [file.rpartition("/lesson") for file in on_branch if file.endswith(".py")]
    drawn = [str(path) for room, _, name in modules if room in shown
             for path in Path(shown[room]).glob(f"{name[:2]}_*.ipynb")]
    books = [file for file in on_branch if re.match(r"notebooks/.*\.ipynb$", file) and os.path.exists(file)]
    notebooks = sorted({*books, *drawn})
    if lint([]):
        return 1
    if near:
        say(f"Running the tests nearest to the change: {', '.join(near)} ...")
        if run("-m", "pytest", "-q", *near, **QUIET) not in (0, NO_TESTS):
            return 1
    say("Running the other quick tests ...")
    if pytest("-m", "not slow", *[f"--ignore={path}" for path in near], *chosen(arguments, "tests")):
        return 1
    if notebooks:
        say(f"Running the {len(notebooks)} notebooks that changed ...")
    return pytest("--nbval", *notebooks) if notebooks else 0


def test(arguments):
    """What protects a reader: the tests, and every stored output against a fresh run."""
    if lint([]):
        return 1
    say("Running the tests and the notebooks, two at a time ...")
    return pytest("--nbval", *chosen(arguments, "tests", "notebooks"))


def weekly(arguments):
    """The tests with what takes long, every notebook, and the experiments in full, whose verdicts have to be the same."""
    failed = pytest("--nbval", "--weekly", *chosen(arguments, "tests", "notebooks"))
    if not arguments:
        say("Measuring the experiments in full; afterwards git shows which numbers are others ...")
        failed = run("-m", "scripts.experiments", **QUIET) or failed
    return failed


VERBS = {"lab": lab, "lint": lint, "check": check, "test": test, "weekly": weekly}


def main(verb, *arguments):
    os.chdir(ROOT)
    if verb in VERBS:
        return VERBS[verb](list(arguments))
    return run("-m", MODULES[verb], *arguments, **QUIET)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
