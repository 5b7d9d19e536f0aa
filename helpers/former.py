"""Where modules were before November 2026: notebooks that classes were given then import them by these names for a term."""

import importlib
import importlib.abc
import importlib.util
import sys

MODULES = {
    "helpers.corpora": "helpers.grammars", "helpers.vocabularies": "helpers.grammars",
    "helpers.experiment": "helpers.measure.claim",
    "helpers.jitter": "helpers.measure.jitter", "helpers.together": "helpers.measure.together",
    **{f"helpers.{name}": f"helpers.page.{name}" for name in (
        "achievement", "attention_views", "chat", "claims", "colab", "course", "drawing", "finds", "inventory", "pictures",
        "predictions", "questions", "sheet", "show", "steps")},
    **{f"helpers.{name}": f"helpers.store.{name}" for name in ("files", "gguf", "model_files", "progress")},
}


class Former(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module by its former name, and loads the one that it is now."""

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in MODULES else None

    def create_module(self, spec):
        module = importlib.import_module(MODULES[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state  # it is loaded already, under the name that it has now


def install():
    if not any(isinstance(finder, Former) for finder in sys.meta_path):
        sys.meta_path.append(Former())
