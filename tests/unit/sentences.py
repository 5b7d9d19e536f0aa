"""What a reader is told where something cannot be used: one sentence."""

import pytest


def refusal(kind, function, *arguments, **options):
    """The message of the error of this kind that the call raises, which has to be one line that ends as a sentence does."""
    with pytest.raises(kind) as told:
        function(*arguments, **options)
    message = str(told.value)
    assert "\n" not in message and message.endswith((".", '".', "].")), message
    return message
