"""Every cell that invites a reader's own text, list, number or function, with what a reader may give it.

Such a cell says so in its metadata: {"own": {"my_sentence": "text"}}, the name that the reader sets and what it is, or
{"own": {"my_translation()": "text"}} for the first argument of a call, "ask(1)" for its second and "ask(k=)" for one by
its name. The lesson is run up to that cell; then the cell and the code cells right behind it are run with each input in
its place. They answer, or say in one sentence what is wrong: an error that shows no traceback.
"""

import ast
import os
import subprocess
import sys
import tempfile

import nbformat
import pytest
from notebook_code import LESSONS, code_cells

LONG = "bears " * 700
TEXTS = ["", " \n", 7, None, 3.5, ["the", "bears"], "Ein Haus am See, wo die Bären schlafen", "国家的名字", "🐻",
         '"(Bears;)!"', "THE DATE!", "café", "123", "$5 and $x^$", "<b>bears</b>", "a", LONG]
INPUTS = {
    "text": TEXTS,
    "matrix": [[], [[]], 7, None, "text", [[1, 2]], [[0, 1], [1], [0, 0]], [[0, 1], [1, 0], [0, "x"]],
               [[0, 1], [1, 0], [0, 1e300]], [[0, 0]] * 3, [[1, 0, 0]] * 3, [[True, False], [1.5, -2], [10**30, 0]],
               [[1000, -1000]] * 3],
    "texts": [[], [""], "one string", 7, None, [7, None], ["Emma.", "🐻"], ["a"], [LONG], ["the bears"] * 60],
    "number": [0, -1, 1, 2, 10**9, 0.5, float("nan"), float("inf"), "7", None, [1]],
    "name": ["", 7, None, "国家 $x^$ <b>", LONG],
    "file": ["", " ", 7, None, "nowhere.txt", ".", "~/nowhere", "🐻", LONG],
    "pairs": [{}, [], "one string", 7, None, {"A": 7}, {7: "b"}, {"": ""}, {"Where?": "here"}, {"🐻": "<b>$x^$"},
              {LONG: LONG}],
    "heads": [[], None, 7, (23, 5), "23, 5", [(99, 0)], [(23, 4)] * 2, [(0, 0)] * 4, [(0.5, 1)], [("a", "b")], [[5, 2]]],
    "scene": [{}, [], 7, None, "red", {"bear": "red"}, {"bear": "red", "cave": 7}, {"bear": "red", "cave": "nocolour"},
              {"Bear.": "Red!", "cave": "#00f"}, {"bear": "red", "cave": "blue", "lion;": "gold"}, {7: "red", "🐻": "$x^$"}],
    "guesses": [{}, [], "one string", 7, None, {"he waits": 7}, {"he waits": "."}, {"He waits!": "they are"}, {7: "the"},
                {"the bears": "Emma."}, {"the": "🐻"}, {"the": LONG}, {"": "", LONG: "the"}],
    "numbers": [[], 7, None, "56", [7], [5, 6, 6], ["a"], [0.5], [[5]], [None], list(range(100))],
    "page": ["", 7, "find.txt", "🐻", "nowhere/find.html", "find.html", LONG + ".html"],
    # what a function returns, whatever it is given
    "scores": ["None", "x", "'text'", "[(5, 2)]", "{(5, 2): 'a'}", "{(99, 0): 1}", "{(5, 2): float('nan')}"],
    "function": ["None", "x", "'text'", "1 / 0", "undefined", "float('nan')"],
}
FUNCTIONS = ("function", "scores")  # the kinds that say what a function returns


def cells(number):
    """The code cells of a lesson in runs, without Markdown between: [[(source, own), ...], ...]."""
    runs = [[]]
    for cell in nbformat.read(LESSONS[number], as_version=4).cells:
        if cell.cell_type == "code":
            runs[-1].append((cell.source, cell.metadata.get("own", {})))
        elif runs[-1]:
            runs.append([])
    return runs


OWN = [number for number in LESSONS if any(own for run in cells(number) for _, own in run)]


def with_value(source, name, value, kind="text"):
    """The source with another value for ``name``: the source of a value or, for a function, of what it returns."""
    tree = ast.parse(source)
    call, _, which = name.rstrip(")").partition("(")
    if kind in FUNCTIONS and f"def {name}(" not in source:  # it was written in an earlier cell
        tree.body.insert(0, ast.parse(f"def {name}(): ...").body[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.body = ast.parse(f"return {value}").body
            node.args = ast.parse("lambda x=None, *rest, **more: 0").body[0].value.args
        elif isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            node.value = ast.parse(value).body[0].value
        elif isinstance(node, ast.Call) and "(" in name and ast.unparse(node.func) == call:
            if which.endswith("="):
                next(word for word in node.keywords if word.arg == which[:-1]).value = ast.parse(value).body[0].value
            else:
                node.args[int(which or 0)] = ast.parse(value).body[0].value
    return ast.unparse(ast.fix_missing_locations(tree))


def trial(number):
    """Run a lesson, and print a line for each input that is answered by anything but a result or one sentence."""
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib.colors import to_hex

    from helpers.plots import INKS

    shell = InteractiveShell.instance()
    tried = 0
    os.chdir(tempfile.mkdtemp())  # where a file that a cell writes harms nobody

    def run(source):
        """The error of a piece of code, or None; nothing of what it shows is seen, but every figure is drawn."""
        result = shell.run_cell(source, silent=True)
        error = result.error_before_exec or result.error_in_exec
        if "matplotlib.pyplot" in sys.modules:
            plt = sys.modules["matplotlib.pyplot"]
            try:
                for number in plt.get_fignums():
                    figure = plt.figure(number)
                    figure.canvas.draw()  # a formula between dollars is read only now
                    if pale := [text.get_text() for text in figure.findobj(plt.Text) if to_hex(text.get_color()) in INKS]:
                        raise ValueError(f"{pale} cannot be read on white: let plots.ink choose the colour of letters")
            except Exception as in_figure:
                error = error or in_figure
            plt.close("all")
        return error

    def trouble(error):
        """What a reader would see of an error, where it is not one sentence."""
        if error is None:
            return ""
        if not hasattr(error, "_render_traceback_"):
            return f"{type(error).__name__}: {error}"
        text = str(error)
        return "" if text.endswith((".", "?", "!")) and "\n" not in text and len(text) < 400 else f"no one sentence: {text}"

    for cells_run in cells(number):
        for i, (source, own) in enumerate(cells_run):
            for name, kind in own.items():
                for value in INPUTS[kind]:
                    value = value if kind in FUNCTIONS else f"float('{value}')" if value != value or value in (
                        float("inf"),) else repr(value)
                    tried += 1
                    told = ""
                    for k, (follower, _) in enumerate(cells_run[i:]):
                        error = run(with_value(follower, name, value, kind) if k == 0 else follower)
                        told = trouble(error)
                        if error is not None:
                            break
                    if told:
                        print(f"WRONG {name} = {value[:60]}: {told[:300]}", file=sys.__stdout__)
            error = run(source)
            if error is not None:
                print(f"WRONG the lesson itself, in {source[:60]!r}: {error}", file=sys.__stdout__)
    print(f"TRIED {tried}", file=sys.__stdout__)


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(number, marks=pytest.mark.weekly if number in ("10", "11", "15", "18", "19")
                                                 else ()) for number in OWN])
def test_whatever_a_reader_gives_is_answered_by_a_result_or_one_sentence(number):
    done = subprocess.run([sys.executable, __file__, number], capture_output=True, text=True, encoding="utf-8", cwd=LESSONS[
        number].parent, env={**os.environ, "MPLBACKEND": "agg", "ATTENTION_COURSE_PROGRESS": "off", "OMP_NUM_THREADS": "1"})
    lines = done.stdout.splitlines()
    assert any(line.startswith("TRIED ") and int(line.split()[1]) for line in lines), done.stderr[-3000:]
    assert not [line for line in lines if line.startswith("WRONG")]


@pytest.mark.parametrize("number", OWN)
def test_no_variable_of_a_lesson_takes_the_name_of_what_cleans_words(number):
    """A cell that is run again, after the rest of the lesson, would call the variable."""
    trees = [ast.parse(source) for source in code_cells(LESSONS[number])]
    imported = {alias.asname or alias.name for tree in trees for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module == "helpers.words" for alias in node.names}
    local = {id(node) for tree in trees for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.Lambda))
             for node in ast.walk(function)}
    assert not imported & {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)
                           and isinstance(node.ctx, ast.Store) and id(node) not in local}


if __name__ == "__main__":
    sys.path.insert(0, str(LESSONS["00"].parents[1]))
    trial(sys.argv[1])
