"""Run notebooks again from an empty kernel and store their outputs: make execute [NB="notebooks/01*.ipynb"].

Two at a time. A notebook in which a cell raises is left as it was. What would change with every run (times,
the ids of widgets, versions in the metadata) is left out, so that a diff shows what a reader would see.
"""

import base64
import glob
import io
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
import PIL.Image
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from helpers.store.files import write_whole
from scripts import CELL_SECONDS, ROOT

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": "3.11",  # the version the stored outputs stand for, not the one at hand
}
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path, seconds=CELL_SECONDS):
    """Run one notebook and store it: the sentence to print, and whether it went well.

    ``seconds``: the limit of a cell, None: any.
    """
    path, start, used = Path(path), time.perf_counter(), sum(os.times()[2:4])
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError) as error:
        return f"{path}: not a notebook that can be read ({error}).", False
    client = NotebookClient(
        notebook, timeout=seconds, startup_timeout=CELL_SECONDS, kernel_name="python3", record_timing=False,
        coalesce_streams=True, store_widget_state=False, resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=["--log-level=CRITICAL"],  # or each kernel warns of its loopback connection
    )
    try:
        try:
            client.execute()
        except RuntimeError:
            if client.code_cells_executed:
                raise
            client.execute()  # the kernel died before its first cell: two that start at once may take one port
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:
        number = client.code_cells_executed
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
        what = f"code cell {number} (id {code[number - 1].id}) {complaint(error)}" if number else "no kernel starts here"
        return f"{path}: {what}. The notebook was left as it was.", False
    tidy(notebook)
    try:
        write_whole(path, nbformat.writes(notebook) + "\n")
    except OSError as error:
        return f"{path}: could not be stored ({error.strerror}). The notebook was left as it was.", False
    used = sum(os.times()[2:4]) - used
    return f"{time.perf_counter() - start:6.1f} s, {used:6.1f} s of processor time  {path}", True


def complaint(error):
    """What the last cell that began did, in a few words."""
    if isinstance(error, CellExecutionError):
        return f"raised {error.ename}: {error.evalue}".rstrip(".").replace("\n", " ")
    return f"took longer than {CELL_SECONDS} s" if isinstance(error, CellTimeoutError) else "died"


def tidy(notebook):
    """Leave out what changes with every run."""
    notebook.metadata["kernelspec"] = KERNELSPEC
    notebook.metadata["language_info"] = LANGUAGE
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            # Without its state, which is not stored, a widget shows only an error: keep the static version.
            if len(output.get("data", {})) > 1:
                output.data.pop(WIDGET, None)
            if picture := output.get("data", {}).get("image/png"):
                output.data["image/png"] = smaller(picture)


def smaller(picture):
    """A PNG in base64 with at most 256 colours, which is what most figures have: a third of the bytes."""
    contents = io.BytesIO()
    image = PIL.Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    image.quantize(256, dither=PIL.Image.Dither.NONE).save(contents, "PNG", optimize=True)
    return base64.b64encode(contents.getvalue()).decode()


def main(patterns, seconds=CELL_SECONDS):
    """Run the notebooks of these patterns; 1 if one did not go well, else 0."""
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("ATTENTION_COURSE_PROGRESS", "off")
    os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="ipython-")  # no start-up file or history of the person at work
    paths = []
    for pattern in patterns or [f"notebooks/{folder}*.ipynb" for folder in ("", "solutions/", "experiments/")]:
        matches = sorted(glob.glob(pattern))
        if not matches and patterns:
            print(f"No notebook is called {pattern}.", file=sys.stderr)
            return 1
        paths += [path for path in matches if path not in paths]
    failed = 0
    with ProcessPoolExecutor(2) as pool:
        for sentence, went_well in pool.map(partial(execute, seconds=seconds), paths):
            print(sentence, file=sys.stdout if went_well else sys.stderr, flush=True)
            failed += not went_well
    print(f"{len(paths) - failed} of {len(paths)} notebooks were run and stored.", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
