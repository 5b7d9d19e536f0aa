"""The browser edition: lessons that run in a page, with nothing installed. scripts/book.py puts it into the book, as run/.

It is JupyterLite with the Pyodide kernel. What cannot run there, because it needs PyTorch or the like, has the tag
``needs-install`` in the notebook: the edition shows its code and its stored results instead. Pyodide's files are named,
with their sizes and SHA-256, in docs/book/pyodide.json. They are copied from the folder that the environment variable
ATTENTION_COURSE_PYODIDE names; without it, the page loads them from Pyodide's own address.

Not jupyterlite-sphinx: it would replace the few lines below that call JupyterLite, with six applications where two are
wanted (0.23), and does nothing for the rest: lessons with stored results, our wheels, Pyodide's files, the page that loads.
"""

import bz2
import functools
import hashlib
import http.server
import importlib.metadata
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from helpers.page import drawing
from helpers.page.course import LESSONS
from scripts import ROOT
from scripts.handout import DRAWING, fold_what_answers
from scripts.links import EXERCISE, relink
from scripts.setup import Stop

HERE = ROOT / "docs" / "book"
KNOWN = "progress.json"  # beside the front page: what a server on one's own machine knows; in the book as built, nothing
STANDINS = HERE / "standins"  # Python modules for packages that Pyodide does not carry here
VARIABLE = "ATTENTION_COURSE_PYODIDE"
TAG = "needs-install"
RUNS = [f"notebooks/{lesson.file}" for number, lesson in LESSONS.items() if number <= "08" or number == "15"]
PYODIDE = json.loads((HERE / "pyodide.json").read_text(encoding="utf-8"))
DATA = ("addresses.txt.xz", "claims.json", "course.toml", "experiments/08.json", "map.toml", "predictions.toml",
        "questions.toml", "word_vectors.npz")  # what these lessons read
MEGABYTES = 47  # that a lesson loads the first time; a test measures it
TITLE = "Attention and transformers"
APPS = "notebooks", "tree"  # of JupyterLite: one lesson, and the list of files
DISABLED = ["@jupyter-notebook/notebook-extension:trusted",  # every result in the page was made in it
            "@jupyter-notebook/application-extension:pages"]  # which leads to JupyterLab, which is not here
FROM_PACKAGES = "comm", "ipywidgets"  # pure Python that Pyodide does not carry: taken from this environment
LITE = "lite"  # where the set-up puts what JupyterLab cannot load, beside its labextensions
EXTENSIONS = "@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension"
DARK = ROOT / "helpers" / "page" / "lab" / "custom.css"  # what JupyterLab does with figures on a dark page
BOOK = "https://book.invalid/"  # loading.js puts the book's own address in its place, which no builder knows
STORED = f"*This cell needs [an installation]({BOOK}index.html#run-it): it does not run in a browser.{{}}*"
GAVE = " Here is what it gave when the course was last run."
NOTE = ("\n\n> You are in the browser edition: Python runs in this page, and nothing is installed. What you write, predict "
        "and pass is kept in this browser. *File > Open* lists the lessons: there you can download your copy of one, or "
        "delete it to begin the lesson again.{}")
NOTE_STORED = " Cells that need PyTorch, or another package that browsers lack, show stored results."


def lesson(path):
    """The JSON of a lesson for the browser: to be run, without results, but with those that cannot be had there."""
    text, exercise, cells = json.loads((ROOT / path).read_text(encoding="utf-8")), None, []
    for cell in text["cells"]:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", ())
        if cell["id"] == DRAWING:  # it is to be seen before Python is there
            cell["outputs"], cell["metadata"]["trusted"], cell["execution_count"] = mapped(cell, path), True, None
        elif cell["cell_type"] == "markdown":
            named = EXERCISE.findall(source)
            exercise = named[-1] if named else exercise
            source = relink(source, path, address)
            if exercise:
                source = re.sub(r"(solutions/[^)#]*\.html)\)", rf"\1#solution-{exercise.replace('_', '-')})", source)
            cell["source"] = source
        elif TAG in tags:
            cell = stored(cell)
        elif "remove-cell" in tags:  # Colab's
            continue
        else:
            cell |= {"outputs": [], "execution_count": None}
        cells.append(cell)
    fold_what_answers(cells)
    cells[0]["source"] += NOTE.format(NOTE_STORED if any(TAG in cell["metadata"].get("tags", ()) for cell in cells) else "")
    text["cells"] = cells
    text["metadata"]["kernelspec"] = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
    return json.dumps(text, ensure_ascii=False)


def mapped(cell, path):
    """The outputs of the cell that draws where a lesson is in the whole model, as HTML that fits a wide page and a narrow
    one, light or dark; in the notebook it is one picture."""
    number = Path(path).name[:2]
    data = {"text/html": drawing.html(number), "text/plain": drawing.path(number)}
    return [{"output_type": "display_data", "data": data, "metadata": {}}] if cell["outputs"] else []


def address(page):
    """How a lesson of the edition links to a page of the book, named as in ``links.PAGES``, or to another lesson."""
    here = f"notebooks/{page}.ipynb"
    return Path(here).name if here in RUNS else f"{BOOK}{page}.html"


def stored(cell):
    """A code cell as text: one line that says why, its code unless that is folded, and what it gave."""
    source, parts, pictures = "".join(cell["source"]), [STORED.format(GAVE if cell["outputs"] else "")], {}
    if not {"hide-input", "remove-input"} & {*cell["metadata"].get("tags", ())}:
        parts.append(f"```python\n{source}\n```")
    for number, output in enumerate(cell["outputs"]):
        data = output.get("data", {})
        if "image/png" in data:
            pictures[f"{number}.png"] = {"image/png": "".join(data["image/png"]).replace("\n", "")}
            parts.append(f"![Figure; the text below it says what it shows.](attachment:{number}.png)")
        elif words := "".join(output.get("text", data.get("text/plain", ""))).strip("\n"):
            parts.append(f"```text\n{words}\n```")
    made = {"cell_type": "markdown", "id": cell["id"], "metadata": {"tags": [TAG]}, "source": "\n\n".join(parts)}
    return made | ({"attachments": pictures} if pictures else {})


def digest(contents):
    """The SHA-256 of bytes."""
    return hashlib.sha256(contents).hexdigest()


def wheel(folder, name, version, files):
    """Write a wheel of ``files``, {name in the wheel: bytes}, into ``folder``. Returns its name."""
    target, about = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    if f"{about}/METADATA" not in files:
        files = files | {f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                         f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                         f"{about}/RECORD": ""}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, contents in files.items():
            archive.writestr(inside, contents)
    return target.name


def wheels(folder):
    """The course's own code and data and what else Pyodide does not carry, as wheels in ``folder``. Returns their names."""
    folder.mkdir(parents=True)
    paths = [*(path for kind in ("py", "css", "html") for path in sorted((ROOT / "helpers").rglob(f"*.{kind}"))),
             *sorted((ROOT / "notebooks/figures").glob("*.py")), *(ROOT / "data" / name for name in DATA)]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    files |= {path.name: path.read_bytes() for path in sorted(STANDINS.glob("*.py"))}
    files |= {name: bz2.compress(lzma.decompress(contents)) for name, contents in files.items() if name.endswith(".xz")}
    # Browsers keep a wheel under its name, which therefore says what is in it.
    version = int(digest(repr([(name, digest(contents)) for name, contents in files.items()]).encode())[:8], 16)
    names = [wheel(folder, "attention_course", f"0.1.{version}", files)]
    for name in FROM_PACKAGES:
        package = importlib.metadata.distribution(name)
        names.append(wheel(folder, name, package.version, {
            file.as_posix(): Path(file.locate()).read_bytes() for file in package.files
            if file.parts[0].startswith(name) and file.suffix != ".pyc"}))
    return names


def copy_pyodide(source, target):
    """Copy Pyodide's files, each verified, from the folder ``source``. Raises Stop, which names those that are missing or
    are others."""
    names = *PYODIDE["files"], "pyodide-lock.json"
    files = {name: (source / name).read_bytes() for name in names if (source / name).is_file()}
    wrong = [name for name, pinned in PYODIDE["files"].items() if digest(files.get(name, b"")) != pinned["sha256"]]
    wrong += ["pyodide-lock.json"] * ("pyodide-lock.json" not in files)
    if wrong:
        more = f" and {len(wrong) - 3} more" * (len(wrong) > 3)
        raise Stop(f"{VARIABLE} names {source}, where these files of Pyodide {PYODIDE['version']} are missing or others: "
                   f"{', '.join(wrong[:3])}{more}. Put them there, or unset the variable, and the page will load them from "
                   "Pyodide's own address.")
    lock = json.loads(files.pop("pyodide-lock.json"))
    lock["packages"] = {name: package for name, package in lock["packages"].items() if package["file_name"] in files}
    target.mkdir(parents=True)
    for name, contents in files.items():
        (target / name).write_bytes(contents)
    (target / "pyodide-lock.json").write_text(json.dumps(lock))


def build(html, work):
    """Build the edition in ``html``/run, with ``work`` for what is needed on the way. Returns where Python comes from, a
    sentence. Raises Stop when Pyodide's files are not what they should be, or JupyterLite cannot build."""
    contents, run, folder = work / "contents", html / "run", os.environ.get(VARIABLE)
    contents.mkdir(parents=True)
    for path in RUNS:
        (contents / Path(path).name).write_text(lesson(path), encoding="utf-8")
    share = Path(sysconfig.get_path("data")) / "share" / "jupyter"
    extensions = [share / (LITE if (share / LITE / name).exists() else "labextensions") / name for name in EXTENSIONS]
    write(work / "jupyter_lite_config.json", {"LiteBuildConfig": {
        "apps": APPS, "contents": ["contents"], "output_dir": str(run), "no_sourcemaps": True,
        "no_unused_shared_packages": True, "ignore_sys_prefix": ["federated_extensions"],
        "federated_extensions": [*map(str, extensions)]}})
    done = subprocess.run([sys.executable, "-m", "jupyterlite_core", "build"], cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise Stop(f"The browser edition could not be built. JupyterLite says: {(done.stdout + done.stderr)[-1500:]}")
    own = wheels(run / "wheels")
    if folder:
        copy_pyodide(Path(folder), run / "pyodide")
    configure(run, own, "./pyodide/" if folder else PYODIDE["address"])
    return (f"Pyodide {PYODIDE['version']} was copied from {folder} and verified" if folder else
            f"its pages load Pyodide {PYODIDE['version']} from its own address, since {VARIABLE} names no folder with it")


def configure(run, own, pyodide):
    """Say in the edition's own files where Python comes from, ``pyodide``, and what it begins with; show it loading."""
    # Pyodide looks for a wheel beside the kernel's own script.
    up = "../" * len((Path("extensions") / EXTENSIONS[1] / "static").parts)
    kernel = {"pyodideUrl": "./python.js", "disablePyPIFallback": True, "loadPyodideOptions": {
        "indexURL": pyodide, "packages": [*PYODIDE["packages"], *(f"{up}wheels/{name}" for name in own)],
        "env": {"HOME": "/home/pyodide", "ATTENTION_COURSE_PROGRESS": "/drive/.progress.json"}}}
    path = run / "jupyter-lite.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    page = config["jupyter-config-data"]
    page |= {"appName": TITLE, "appUrl": "./tree", "exposeAppInBrowser": True, "settingsOverrides": {
        "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},  # as the book or the system is: page.js
        "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 2}}}  # seconds
    page.setdefault("disabledExtensions", []).extend(DISABLED)
    page.setdefault("litePluginSettings", {}).setdefault(f"{EXTENSIONS[1]}:kernel", {}).update(kernel)
    write(path, config)
    size = sum(file["bytes"] for name, file in PYODIDE["files"].items() if not name.endswith(".js"))  # not counted
    size += sum((run / "wheels" / name).stat().st_size for name in own)
    for name in ("loading.js", "page.js", "page.css", "static/icon.svg"):
        shutil.copy(HERE / name, run)
    (run / "page.css").write_text(f"{DARK.read_text(encoding='utf-8')}{(run / 'page.css').read_text(encoding='utf-8')}",
                                  encoding="utf-8")
    cache = f"python-{digest((HERE / 'pyodide.json').read_bytes())[:8]}"
    (run / "python.js").write_text(f"const KEPT = {json.dumps(cache)};\n" + (HERE / "python.js").read_text(encoding="utf-8"),
                                   encoding="utf-8")
    constants = f"const BOOK = {json.dumps(BOOK)}, MEGABYTES = {MEGABYTES}, BYTES = {size};"
    head = ("<link rel='icon' href='../icon.svg'><link rel='stylesheet' href='../page.css'>"
            f"<script>{constants}</script><script src='../page.js'></script>")
    loads = "<script defer src='../loading.js'></script>"
    for app in APPS:
        path = run / app / "index.html"
        text = re.sub("<title>.*?</title>", f"<title>{TITLE}</title>", path.read_text(encoding="utf-8"), count=1)
        text = text.replace("</head>", head + (loads if app == "notebooks" else "") + "</head>", 1)
        path.write_text(text, encoding="utf-8")


def write(path, value):
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Gives files their types whatever the system says of them, and keeps quiet. ``known``: as for `server`."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript", ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml"}

    def __init__(self, *request, known=dict, **more):
        self.known = known
        super().__init__(*request, **more)

    def send_head(self):
        """A file's headers and the file, or what is known at this moment as one."""
        if self.path.partition("?")[0] != f"/{KNOWN}":
            return super().send_head()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        return io.BytesIO(json.dumps(self.known()).encode())

    def log_message(self, *_):
        pass


def server(html, port, known=dict):
    """A server of the book on this machine, which nobody else reaches. ``known()``: what its learner has done, which KNOWN
    tells the front page. Raises OSError when the port is taken."""
    handler = functools.partial(Handler, directory=str(html), known=known)
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
