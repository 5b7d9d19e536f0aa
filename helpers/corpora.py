"""The old name of ``grammars``: notebooks that classes were given in November 2026 import it."""

from helpers.grammars import agreement_grammar  # noqa: F401
