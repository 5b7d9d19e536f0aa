"""scripts/kernels.py: a forked kernel is a kernel like another, and finds its modules imported."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from scripts import kernels
from scripts.limits import CELL_SECONDS

pytestmark = [pytest.mark.skipif(not kernels.POSSIBLE, reason="kernels are forked on Linux only"),
              pytest.mark.tool("scripts/kernels.py", "constraints.txt", __file__)]
ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
MODULES = ("ipykernel.kernelapp", "numpy", "colorsys")  # the last stands for what is dear


@pytest.fixture(scope="module", autouse=True)
def parent():
    """Parents of this process's own, also where pytest shares those of another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(kernels.SHARED, raising=False)
        yield
        kernels.end()


@pytest.fixture
def start(tmp_path):
    started = []

    def one(**how):
        with kernels.warm(MODULES):
            started.append(start_new_kernel(kernel_name="python3", startup_timeout=CELL_SECONDS, cwd=str(tmp_path), **how))
        return started[-1]
    yield one
    for manager, client in started:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def value(client, expression):
    """What an expression is in the kernel; the error's name if it has none."""
    reply = client.execute_interactive("", user_expressions={"it": expression}, timeout=CELL_SECONDS)
    if reply["content"]["status"] == "aborted":  # a kernel may drop what comes while it still answers for an error
        reply = client.execute_interactive("", user_expressions={"it": expression}, timeout=CELL_SECONDS)
    found = reply["content"]["user_expressions"]["it"]
    return ast.literal_eval(found["data"]["text/plain"]) if found["status"] == "ok" else found["ename"]


def test_it_has_what_was_asked_for_and_nothing_of_another(start, tmp_path):
    first = start(env={**os.environ, "COLOUR": "blue"})[1]
    second = start()[1]
    for client in (first, second):
        assert value(client, "'colorsys' in __import__('sys').modules")
        assert value(client, "__import__('os').getcwd()") == str(tmp_path)
        assert value(client, "__name__") == "__main__"
        path = value(client, "__import__('sys').path")
        assert "" in path and str(Path(kernels.__file__).parent) not in path
        assert value(client, "colorsys") == "NameError"
    assert value(first, "__import__('os').environ['COLOUR']") == "blue"
    assert value(second, "__import__('os').environ['COLOUR']") == "KeyError"
    first.execute_interactive("import colorsys; colorsys.changed = True", timeout=CELL_SECONDS)
    assert value(second, "__import__('colorsys').changed") == "AttributeError"
    drawn = [value(client, "float(__import__('numpy').random.random())") for client in (first, second)]
    assert drawn[0] != drawn[1], "numbers that nobody seeded are the same in two kernels"


def test_it_can_be_interrupted_and_its_death_is_noticed(start):
    manager, client = start()
    begun = client.execute("print('begun')\nwhile True: pass")
    while client.get_iopub_msg(timeout=CELL_SECONDS)["msg_type"] != "stream":
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=CELL_SECONDS)
    while reply["parent_header"].get("msg_id") != begun:
        reply = client.get_shell_msg(timeout=CELL_SECONDS)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert value(client, "6 * 7") == 42 and manager.is_alive()
    client.execute("import os; os._exit(3)")
    process = manager.provisioner.process
    assert process.wait(CELL_SECONDS) == 3 and not manager.is_alive()


def test_processes_share_the_parents_of_another(tmp_path):
    """Two processes get kernels that one parent has forked, and hear what became of them."""
    asks = ("import sys\nfrom scripts import kernels\nfrom jupyter_client.manager import start_new_kernel\n"
            f"with kernels.warm({MODULES}):\n    manager, client = start_new_kernel(kernel_name='python3')\n"
            "client.execute_interactive('import os, colorsys; print(os.getppid())')\n"
            "client.execute('os._exit(3)')\n"
            "assert manager.provisioner.process.wait(600) == 3\n")
    shares = ("import subprocess, sys\nfrom scripts import kernels\nkernels.share()\n"
              "for _ in range(2):\n    subprocess.run([sys.executable, sys.argv[1]], check=True)\n"
              "assert len(kernels._parents) == 1\nkernels.end()\n")
    (tmp_path / "asks.py").write_text(asks)
    done = subprocess.run([sys.executable, "-c", shares, tmp_path / "asks.py"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 2 and len(set(done.stdout.split())) == 1


def test_kernels_end_with_their_parent(start):
    manager, _ = start()
    process = manager.provisioner.process
    kernels.end()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    with pytest.raises(RuntimeError, match="has ended .* --fresh-kernels"):
        process.poll()
    process.returncode = -signal.SIGKILL  # for the fixture, which ends it once more


def test_a_module_that_starts_a_thread_is_refused(tmp_path, monkeypatch):
    (tmp_path / "threaded.py").write_text("import threading, time\n"
                                          "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="has ended"), kernels.warm(("threaded",)):
        start_new_kernel(kernel_name="python3")


@pytest.mark.parametrize(("path", "torch"), [
    ("notebooks/05_scaling.ipynb", False), ("notebooks/06_masking.ipynb", True), ("notebooks/10_a.ipynb", True),
    ("notebooks/solutions/05_scaling.ipynb", True)])
def test_the_first_lessons_import_torch_themselves(path, torch):
    assert ("torch" in kernels.modules_for(Path(path))) == torch


def test_only_what_is_held_against_transformers_finds_it_imported():
    wanted = {f"{path.parent.name}/{path.name[:2]}" for path in [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("*/*.ipynb")]
              if kernels.modules_for(path) == kernels.MODELS}
    assert wanted == {"notebooks/09", "notebooks/13", "notebooks/16", "experiments/13", "experiments/16"}


def test_a_parent_that_needs_more_is_forked_from_the_one_that_has_the_rest(monkeypatch):
    more = (*MODULES, "this")
    monkeypatch.setattr(kernels, "STEPS", (more, MODULES))
    for modules in (more, MODULES):
        with kernels.warm(modules):
            manager, client = start_new_kernel(kernel_name="python3", startup_timeout=CELL_SECONDS)
        assert value(client, "'this' in __import__('sys').modules") == (modules == more)
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    above, below = (kernels.parent_with(modules).process for modules in (more, MODULES))
    assert f"\nPPid:\t{below.pid}\n" in Path(f"/proc/{above.pid}/status").read_text()
    kernels.end()
    assert not Path(f"/proc/{above.pid}").exists() and above.returncode == 0


def test_each_step_begins_with_the_next():
    for step, lower in zip(kernels.STEPS, kernels.STEPS[1:], strict=False):
        assert step[:len(lower)] == lower != step
