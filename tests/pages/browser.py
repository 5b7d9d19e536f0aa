"""A real JupyterLab in a real browser, with the network closed.

In a test, where conftest.py gives it:

    def test_it_runs(lab):
        with lab.open(lesson("01")) as notebook:
            notebook.run_all()

The lab works on a copy of notebooks/, helpers/ and data/, so nothing in the tree changes. JupyterLab is loaded once and
every notebook is opened in it, which takes a second each; loading the page again takes six.
Needs Chromium or Chrome on the PATH, or its path in the environment variable CHROMIUM.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from scripts.verbs import LOOK

REPO = Path(__file__).resolve().parents[2]
COPIED = ("notebooks", "helpers", "data")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOCAL = re.compile(r"^(?:https?|wss?)://(?:127\.0\.0\.1|localhost|\[::1\])(?:[:/]|$)")
NOT_A_REQUEST = ("data:", "blob:", "about:", "chrome:", "chrome-extension:", "devtools:")

# Console errors that are not the course's: a pattern, and the reason to pass it over.
NOT_OURS = {r"reading 'kernel'\)\s+at .*@jupyter-widgets/jupyterlab-manager":
            "ipywidgets asks for the kernel of a notebook that is opened only to be read, and has none"}

SETTINGS = {
    # Every cell stays in the page, so that a test can read the ones that are off the screen.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    # Typed text arrives as it was written.
    "@jupyterlab/codemirror-extension/plugin": {"defaultConfig": {"autoClosingBrackets": False}},
}


PATIENCE = 300  # seconds until a page that answers nothing counts as hanging: a slow machine is a normal machine
LESSON = 1800  # the same for a lesson that runs
POLL = {"polling": 250}  # milliseconds between two looks at a page; playwright's own is each time that the page is drawn
LESSONS = sorted(path.name for path in (REPO / "notebooks").glob("[0-9][0-9]_*.ipynb"))
VIEWS = {  # of lesson 12: how its title begins -> a word of the title, a token to point at, what to click first
    "head view": ("all-MiniLM", "flies", None),
    "model view": ("mini", "thanks", 'rect[style*="opacity: 0;"]'),
    "neuron view": ("time", "flies", None),
}


def lesson(number: str) -> str:
    """The file name of the lesson with this number."""
    return next(name for name in LESSONS if name.startswith(number))


def find_browser() -> str:
    """The path of a Chromium-like browser; the test is skipped with one clear sentence if there is none."""
    named = (os.environ.get("CHROMIUM") or "",)
    found = next(filter(None, map(shutil.which, named + BROWSERS)), None)
    if not found:
        pytest.skip("The pages' tests need a browser: on Debian and Ubuntu `sudo apt install chromium`, elsewhere install "
                    "Chromium or Chrome, or put the path of one in the variable CHROMIUM.")
    pytest.importorskip("playwright", reason="The pages' tests need playwright: pip install playwright.")
    return found


@functools.cache
def no_network() -> tuple[str, ...]:
    """The words that, put before a command, run it without any network; empty where there are none."""
    for words in (("unshare", "-n"), ("unshare", "-rn")):
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    return ()


@contextlib.contextmanager
def start_browser():
    """Chromium, with whatever is not this machine behind a closed port; skips the test if there is none that draws."""
    path = find_browser()
    from playwright.sync_api import Error, sync_playwright
    flags = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync",
             "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=127.0.0.1;localhost"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")             # Chromium refuses its sandbox to root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags, timeout=PATIENCE * 1000)
        with contextlib.closing(browser):
            try:
                page = browser.new_page()
                page.set_content("<p>α × β → \u2212 李 \U0001f43b<p><button>one</button><code>two</code><input value=3>")
                page.screenshot(timeout=PATIENCE * 1000)
                page.close()
            except Error:  # without any font Chromium ends at the first letter that it has to look for in another one
                pytest.skip("The browser ends as soon as it draws a letter, as it does where there are no fonts: on Debian "
                            "and Ubuntu `sudo apt install fonts-liberation`.")
            yield browser


@contextlib.contextmanager
def served(server):
    """A server of http.server at work in a thread, for as long as the body runs. Gives the address of its root."""
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def axe_findings(page, inside=None, **options):
    """What axe finds on a page, or inside what this CSS selects, but for what it calls minor: a line each. Skips the test
    where axe is not installed."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="`make test` installs axe")
    found = axe.Axe().run(page, inside, {"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{one['id']} ({one['impact']}): {node['html'][:200]}\n   {node['failureSummary']}"
            for one in found if one["impact"] != "minor" for node in one["nodes"]]


class Window:
    """Pages of one browser: what they asked of other machines (``outside``) and reported as errors (``heard``)."""

    def __init__(self, browser, width: int = 1366, height: int = 900, **settings):
        self.outside: list[str] = []            # requests that were refused
        self.heard: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **settings)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.context.on("request", lambda request: self._asked(request.url))

    def new_page(self):
        page = self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.heard.append(f"uncaught: {error.stack} ({page.url})"))
        page.on("websocket", lambda opened: self._asked(opened.url))
        return page

    def problems(self) -> list[str]:
        """What was asked of a network, and what pages reported as errors."""
        return [address for address in self.outside if not address.startswith("file:")] + self.heard

    def _asked(self, address: str) -> None:
        if not LOCAL.match(address) and not address.startswith(NOT_A_REQUEST):
            self.outside.append(address)

    def _heard(self, message) -> None:
        if message.type == "error":
            self.heard.append(f"{message.text} ({(message.location or {}).get('url', '')})")


class Lab(Window):
    """A JupyterLab server on a copy of the course, and a browser that can reach nothing else.

    The kernel runs in a network namespace of its own, with nothing in it, where the system has them (Linux). ``trusted``:
    whether a notebook that is opened is one.
    """

    def __init__(self, browser):
        super().__init__(browser)
        self.trusted, self.page = True, None

    def __enter__(self) -> Lab:
        with contextlib.ExitStack() as stack:
            self._start_server(stack)
            stack.callback(self.context.close)   # before the server ends, or the page complains
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()

    # -- the server -------------------------------------------------------------------------

    def _start_server(self, stack: contextlib.ExitStack) -> None:
        # A short path: with IPC the kernel's sockets are files, whose names may have 107 letters.
        folder = Path(tempfile.mkdtemp(prefix="lab-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.folder, self.root = folder, folder / "course"
        ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        for name in COPIED:
            shutil.copytree(REPO / name, self.root / name, ignore=ignore)
        for name, values in SETTINGS.items():
            write_json(folder / "settings" / (name + ".jupyterlab-settings"), values)
        write_json(folder / "config" / "labconfig" / "page_config.json",
                   {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}})
        write_json(folder / "path" / "kernels" / "python3" / "kernel.json", {
            "argv": [*no_network(), sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Python 3 (ipykernel)", "language": "python"})
        environment = dict(
            os.environ, JUPYTER_CONFIG_DIR=str(folder / "config"), JUPYTER_DATA_DIR=str(folder / "data"),
            JUPYTER_RUNTIME_DIR=str(folder / "run"), JUPYTER_PATH=str(folder / "path"),
            IPYTHONDIR=str(folder / "ipython"), JUPYTERLAB_SETTINGS_DIR=str(folder / "settings"),
            JUPYTERLAB_WORKSPACES_DIR=str(folder / "workspaces"), OMP_NUM_THREADS="1",
            ATTENTION_COURSE_PROGRESS=str(folder / "progress.json"))
        for name in ("MPLBACKEND", "PYTEST_CURRENT_TEST"):
            environment.pop(name, None)
        self.token = secrets.token_hex(16)
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser",
            f"--ServerApp.root_dir={self.root}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
            f"--IdentityProvider.token={self.token}", "--LabApp.extension_manager=readonly",
            "--LabApp.news_url=None", "--ServerApp.allow_root=True", *LOOK]
        if no_network():
            command.append("--KernelManager.transport=ipc")
        self.log = folder / "server.log"
        with open(self.log, "wb") as log:
            server = subprocess.Popen(command, env=environment, cwd=self.root, stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.terminate)         # it ends its kernels
        self.address = self._wait_for(server)

    def _wait_for(self, server: subprocess.Popen) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and server.poll() is None:
            for info in (self.folder / "run").glob(f"jpserver-{server.pid}.json"):
                with contextlib.suppress(OSError, ValueError):
                    address = json.loads(info.read_text())["url"].rstrip("/")
                    urllib.request.urlopen(f"{address}/api/status?token={self.token}", timeout=30).close()
                    return address
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start within {PATIENCE} s; its last words:\n{self.last_words()}")

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    # -- the browser ------------------------------------------------------------------------

    def loaded(self):
        """The page that holds JupyterLab, which is loaded when there is none."""
        if self.page is None or self.page.is_closed():
            self.page = self.new_page()
            workspace = "test-" + secrets.token_hex(4)
            self.page.goto(f"{self.address}/lab/workspaces/{workspace}?reset&token={self.token}")
            self.page.wait_for_function("() => window.jupyterapp && window.jupyterapp.restored.then(() => true)", **POLL)
        return self.page

    def open(self, name: str | Path, fresh: bool = True, kernel: bool = True) -> Notebook:
        """Open a notebook, given as a path below notebooks/, as stored in the repository.

        With ``fresh=False`` as it was saved in the lab; with ``kernel=False`` only to be read.
        """
        name = Path(name).as_posix()
        path = self.root / "notebooks" / name
        original = REPO / "notebooks" / name
        if fresh and original.exists():
            shutil.copy(original, path)
        if self.trusted:
            trust(path, self.folder / "data")
        notebook = Notebook(self, name)
        try:
            notebook._load(kernel)
        except BaseException:
            notebook.close()
            raise
        return notebook


class Notebook:
    """One notebook, open in the browser."""

    PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
    OPEN = """([path, kernel]) => void window.jupyterapp.commands.execute('docmanager:open', {
        path, factory: 'Notebook', kernelPreference: kernel ? undefined : {shouldStart: false}})"""
    IS_OPEN = """([path, kernel]) => {
        const panel = window.jupyterapp.shell.currentWidget;
        const session = panel && panel.sessionContext && panel.sessionContext.session;
        return panel && panel.context && panel.context.path === path && panel.context.isReady
            && (!kernel || session && session.kernel && session.kernel.status === 'idle')
            && panel.content.widgets.length === panel.content.model.cells.length; }"""
    CLOSE = """async () => {
        const panel = window.jupyterapp.shell.currentWidget;
        await panel.sessionContext.shutdown();
        panel.dispose();
        return document.querySelectorAll('.jp-Dialog').length; }"""

    def __init__(self, lab: Lab, name: str):
        self.lab, self.name = lab, name
        self._before = len(lab.heard)
        self.page = lab.loaded()

    @property
    def console(self) -> list[str]:
        """Every error that the page reported since this notebook was opened."""
        return self.lab.heard[self._before:]

    def _load(self, kernel: bool) -> None:
        wanted = [f"notebooks/{self.name}", kernel]
        self.page.evaluate(self.OPEN, wanted)
        with self._told(lambda: f"was not open; open dialogs: {self.page.locator('.jp-Dialog').all_inner_texts()}; "
                                f"the server's last words:\n{self.lab.last_words()}"):
            self.page.wait_for_function(self.IS_OPEN, arg=wanted, **POLL)
        self.settle()

    @contextlib.contextmanager
    def _told(self, words):
        """What takes too long says why, by the function ``words``."""
        from playwright.sync_api import TimeoutError as TooLong
        try:
            yield
        except TooLong:
            raise TimeoutError(f"{self.name} {words()}") from None

    def settle(self) -> None:
        """Wait until the page has drawn what it knows."""
        for _ in range(2):
            self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestIdleCallback(done)))")

    def close(self) -> None:
        """Close the notebook and end its kernel; a page that is in the way of the next one is closed as well."""
        try:
            left = self.page.evaluate(self.CLOSE)
        except Exception:
            left = True
        if left:
            self.page.close()

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    # -- what a person does -----------------------------------------------------------------

    def run_all(self) -> None:
        """Run > Run All Cells in the menu; every cell runs, and none ends in an error."""
        self._forget_counts()
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(r"^Run$")).click()
        self.page.locator(".lm-Menu-item[data-command='notebook:run-all-cells'],"
                          ".lm-Menu-item[data-command='runmenu:run-all']").first.click()
        self.wait_idle(LESSON)
        assert not self.errors(), self.errors()
        code = [cell for cell in self.cells() if cell["type"] == "code" and cell["source"].strip()]
        assert [cell["prompt"] for cell in code] == [f"[{i}]:" for i in range(1, len(code) + 1)], "not every cell ran"

    def _forget_counts(self, *cells: int) -> None:
        """A cell that has run is one that has a count again: the stored count says nothing."""
        self.page.evaluate("""chosen => window.jupyterapp.shell.currentWidget.content.widgets.forEach((cell, i) => {
            if (cell.model.type === 'code' && (!chosen.length || chosen.includes(i)))
                cell.model.executionCount = null; })""", list(cells))

    def wait_idle(self, seconds: float = PATIENCE, cell: int | None = None) -> None:
        """Wait until this cell, or the first that has code, has run, none is running or waiting, and all is drawn."""
        with self._told(lambda: f"was not done: cells {[c['index'] for c in self.cells() if '*' in c['prompt']]}"):
            self.page.wait_for_function("""chosen => {
                const panel = window.jupyterapp.shell.currentWidget;
                const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
                const code = panel.content.widgets.filter(
                    cell => cell.model.type === 'code' && cell.model.sharedModel.getSource().trim());
                const waiting = code.some(cell => cell.model.executionState === 'running'
                    || cell.promptNode && cell.promptNode.textContent.includes('*'));
                const first = chosen === null ? code[0] : panel.content.widgets[chosen];
                const ran = !code.includes(first) || first.model.executionCount;
                return kernel && kernel.status === 'idle' && ran && !waiting; }""", arg=cell, timeout=seconds * 1000, **POLL)
        self.settle()

    def cell_with(self, text: str) -> int:
        """The index of the first code cell whose source contains this text."""
        for cell in self.cells():
            if cell["type"] == "code" and text in cell["source"]:
                return cell["index"]
        raise LookupError(f"{self.name} has no code cell with {text!r}")

    def type_into(self, cell: int | str, text: str) -> int:
        """Replace the source of a cell, by hand; a string names a cell by what it contains."""
        index = self.cell_with(cell) if isinstance(cell, str) else cell
        editor = self._cell(index).locator(".cm-content").first
        editor.scroll_into_view_if_needed()
        editor.click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(text)
        typed = self.cells()[index]["source"]
        if typed != text:
            raise AssertionError(f"{self.name}: typed\n{text}\nbut cell {index} holds\n{typed}")
        return index

    def run(self, cell: int | str) -> dict:
        """Run one cell with Shift+Enter, or by command where its input is folded, and return it as `cells` does."""
        index = self.cell_with(cell) if isinstance(cell, str) else cell
        editor = self._cell(index).locator(".cm-content").first
        self._forget_counts(index)
        if editor.count():
            editor.scroll_into_view_if_needed()
            editor.click()
            self.page.keyboard.press("Shift+Enter")
        else:                                    # folded: a click would unfold it
            self.page.evaluate("""index => {
                window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
                void window.jupyterapp.commands.execute('notebook:run-cell'); }""", index)
        self.wait_idle(cell=index)
        return self.cells()[index]

    def answer(self, name: str, source: str) -> str:
        """Type a definition over the exercise's stub, run it and its check; what the check shows.

        The stub is the code cell with `def name(`. The check is `check(name` in that cell, where it
        is kept, or in the first code cell after it that has one.
        """
        stub = self.cell_with(f"def {name}(")
        cells = self.cells()
        call = re.compile(rf"^\s*check\(\s*{name}\b.*$", re.MULTILINE)
        inside = call.search(cells[stub]["source"])
        self.type_into(stub, source + ("\n\n" + inside.group().strip() if inside else ""))
        ran = self.run(stub)
        if not inside:
            after = [cell["index"] for cell in cells[stub + 1:] if call.search(cell["source"])]
            if not after:
                raise LookupError(f"{self.name} has no check({name}) after the stub")
            ran = self.run(after[0])
        return ran["output"]

    # -- what a person sees -----------------------------------------------------------------

    def _cell(self, index: int):
        return self.page.locator(f"{self.PANEL} .jp-Notebook .jp-Cell").nth(index)

    def cells(self) -> list[dict]:
        """Every cell: index, type, source, prompt, output (the text on the page), errors, stderr, images."""
        return self.page.evaluate("""() => {
            const text = node => node.innerText.trim();
            const all = (node, query) => Array.from(node.querySelectorAll(query));
            const notebook = window.jupyterapp.shell.currentWidget.content;
            return notebook.widgets.map((cell, index) => {
                const mime = kind => all(cell.node, `.jp-OutputArea-output[data-mime-type="${kind}"]`);
                return {
                    index, type: cell.model.type, source: cell.model.sharedModel.getSource(),
                    // a folded cell shows no prompt
                    prompt: cell.promptNode?.textContent
                        || (cell.model.executionCount ? `[${cell.model.executionCount}]:` : ''),
                    output: all(cell.node, '.jp-OutputArea-output').map(text).join('\\n').trim(),
                    errors: mime('application/vnd.jupyter.error').map(text),
                    stderr: mime('application/vnd.jupyter.stderr').map(text),
                    images: all(cell.node, '.jp-OutputArea-output img').length }; }); }""")

    def errors(self) -> list[str]:
        """One line for every cell that ended in an error or wrote to stderr."""
        return [f"{self.name}, cell {cell['index']}: {problem[-400:]}"
                for cell in self.cells() for problem in cell["errors"] + cell["stderr"]]

    def console_errors(self) -> list[str]:
        """What the page reported as an error, less what NOT_OURS explains."""
        return [line for line in self.console if not any(re.search(rule, line) for rule in NOT_OURS)]

    def save(self) -> None:
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")


def until(page, holds, what, seconds: float = PATIENCE):
    """Wait until ``holds()`` is true and return it. AssertionError if it never is, with ``what`` was waited for: words, or
    a function that finds them then."""
    end = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what() if callable(what) else what}"
        page.wait_for_timeout(POLL["polling"])
    return answer


def how_it_looks(frame) -> list[float]:
    """For every line of a view of BertViz: how much of it can be seen."""
    return frame.locator("line, path").evaluate_all("""lines => lines.map(line => {
        let seen = 1;
        for (let node = line; node.nodeType === 1; node = node.parentNode) {
            const style = getComputedStyle(node);
            seen *= style.display === 'none' ? 0 : style.opacity; }
        const style = getComputedStyle(line);
        return style.visibility === 'visible' ? seen * style.strokeOpacity : 0; })""")


# What the page in a frame can reach of the page around it.
REACHES = "() => { try { return parent.document.title; } catch { return window.frameElement ? 'the frame' : 'nothing'; } }"

FITS = "() => document.documentElement.scrollHeight <= innerHeight"


def look(page, title: str, hovered: str | None, clicked: str | None = None) -> int:
    """The view called ``title`` has lines, and they look different while the pointer is on the token ``hovered``.

    ``clicked``: what to click first, as CSS, such as a small picture that becomes large. Returns the number of lines.
    """
    page.locator(f'iframe[title="{title}"]').scroll_into_view_if_needed()
    frame = page.frame_locator(f'iframe[title="{title}"]')
    frame.locator("line").first.wait_for(state="attached")
    body = frame.locator("body")
    assert body.evaluate(REACHES) == "nothing", f"{title}: its scripts reach the page around it"
    until(page, lambda: body.evaluate(FITS), f"{title}: the frame is as high as its page")
    page.mouse.move(2, 2)
    if clicked:
        small = len(how_it_looks(frame))
        frame.locator(clicked).first.click(force=True)
        until(page, lambda: len(how_it_looks(frame)) > small, f"{title}: a click enlarges a picture")
    until(page, lambda: sum(seen > 0 for seen in how_it_looks(frame)) > 5, f"{title}: lines that can be seen")
    before = how_it_looks(frame)
    if hovered:
        frame.locator("text", has_text=re.compile(rf"^{re.escape(hovered)}$")).first.hover(force=True)
        until(page, lambda: how_it_looks(frame) != before, f"{title}: a change with the pointer on {hovered!r}")
        page.mouse.move(2, 2)
    assert not page.locator(f'div:has(> iframe[title="{title}"]) > p').is_visible(), "the note for untrusted pages"
    return len(before)


def look_at_lesson_12(page) -> None:
    """Each of its views has lines, and answers the pointer."""
    titles = page.locator("iframe[srcdoc]").evaluate_all("frames => frames.map(frame => frame.title)")
    assert len(titles) == len(VIEWS)
    for title in titles:
        words, token, clicked = next(view for kind, view in VIEWS.items() if title.startswith(kind))
        assert words in title and look(page, title, token, clicked) > 40, title


def trust(path: Path, data: Path) -> None:
    """What `jupyter trust` does, in this process and with this data folder."""
    data.mkdir(parents=True, exist_ok=True)
    notary = NotebookNotary(data_dir=str(data))
    with contextlib.closing(notary.store):
        notary.sign(nbformat.read(path, as_version=4))


def write_json(path: Path, value: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
