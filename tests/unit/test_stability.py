"""scripts/stability.py finds an output that depends on the number of threads, and no other."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from scripts import stability


@pytest.fixture
def notebook():
    """A notebook below the repository, so that its conftest.py counts; taken away afterwards."""
    folder = stability.ROOT / "build" / "stability-test"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "made.ipynb"
    cells = [new_code_cell("print(1 + 1)", execution_count=1, outputs=[new_output("stream", text="2\n")]),
             new_code_cell("import os\nprint(os.environ['OMP_NUM_THREADS'])", execution_count=2,
                           outputs=[new_output("stream", text="1\n")])]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                                                      "language": "python"}}), path)
    yield path.relative_to(stability.ROOT).as_posix()
    path.unlink()
    folder.rmdir()


@pytest.mark.weekly
def test_a_cell_that_depends_on_the_threads_is_reported(notebook, capsys):
    assert stability.main([notebook, "one-thread", "two-threads"]) == 1
    said = capsys.readouterr().out
    assert "one-thread (one thread): 2 of 2 cells hold" in said
    assert "1 of 2 cells hold" in said and "differs under two-threads" in said and "Cell 1" in said
    assert "1 cells differ." in said


def test_what_is_neither_notebook_nor_setting_is_told(capsys):
    with pytest.raises(SystemExit):
        stability.main(["three-threads"])
    assert "neither a notebook nor a setting (one-thread, two-threads, old-" in capsys.readouterr().err
