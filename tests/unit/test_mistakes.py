"""Every checker names each of its mistakes as itself."""


import pytest
from mistakes import misnamed

from helpers.checks import INDEX, exercise


@pytest.mark.parametrize("name", sorted(INDEX))
def test_mistakes_are_named_as_themselves(name, pytestconfig):
    found = misnamed(exercise(name), pytestconfig)
    assert not found, "\n".join(found)
