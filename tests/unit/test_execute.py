"""scripts/execute.py: what is stored, what is left as it was, and a kernel that does not start at once."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from scripts import execute


@pytest.fixture
def notebook(tmp_path):
    def write(*sources):
        path = tmp_path / "made.ipynb"
        nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
        return path
    return write


def outputs(path):
    return [[output.text for output in cell.outputs] for cell in nbformat.read(path, as_version=4).cells]


@pytest.mark.slow
def test_a_kernel_that_dies_before_the_first_cell_is_started_again(notebook, monkeypatch):
    start, failures = execute.NotebookClient.async_start_new_kernel_client, [RuntimeError("Kernel died")]

    async def dies_once(self):
        client = await start(self)
        if failures:
            await self._async_cleanup_kernel()
            raise failures.pop()
        return client

    monkeypatch.setattr("nbclient.client.atexit.register", lambda function: None)  # where it would clean up what is gone
    monkeypatch.setattr(execute.NotebookClient, "async_start_new_kernel_client", dies_once)
    path = notebook("print(6 * 7)")
    sentence, went_well = execute.execute(path)
    assert went_well, sentence
    assert float(sentence.split("s, ")[1].split()[0]) > 0.1, sentence  # the kernel's processor time
    assert outputs(path) == [["42\n"]] and path.read_bytes().endswith(b"}\n")
    failures += [RuntimeError("Kernel died")] * 2
    sentence, went_well = execute.execute(path)
    assert (sentence, went_well) == (f"{path}: no kernel starts here. The notebook was left as it was.", False)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "complaint"), [("1 / 0", "raised ZeroDivisionError: division by zero"),
                                                   ("import os; os._exit(1)", "died")])
def test_a_notebook_that_does_not_reach_its_end_is_left_as_it_was(notebook, source, complaint):
    path = notebook("print(1)", source)
    before = path.read_bytes()
    sentence, went_well = execute.execute(path)
    assert not went_well and f"code cell 2 (id {nbformat.read(path, 4).cells[1].id}) {complaint}" in sentence
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["made.ipynb"]
