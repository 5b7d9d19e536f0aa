"""Is a function still as it was handed out, and does it take what it should?"""

import ast
import inspect
import textwrap


def is_stub(function):
    """True for a body that is only a docstring, ``...``, ``pass`` or ``raise NotImplementedError``.

    ``function``: a function, or its syntax tree (``ast.FunctionDef``). ``return None`` and ``return ...``
    count as nothing too. What was not written with ``def``, or has no source that can be found, is no stub.
    """
    tree = function if isinstance(function, ast.AST) else _tree(inspect.unwrap(function))
    return isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) and all(map(_is_empty, tree.body))


def _is_empty(node):
    """Does a statement do nothing?"""
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant) and node.value.value in (None, ...)
    return isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _tree(function):
    """The syntax tree of what a function's source begins with; None where it cannot be found."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None


def signature_problem(attempt, parameters, args):
    """What is wrong with the arguments that ``attempt`` takes, in a sentence, or None."""
    try:
        signature = inspect.signature(attempt)
    except (TypeError, ValueError):  # built-ins without a readable signature
        return None
    try:
        signature.bind(*args)
    except TypeError:
        name = getattr(attempt, "__name__", "your function")
        return (f"The exercise passes ({', '.join(parameters)}), in this order; "
                f"{name} takes {signature}. Keep the signature of the stub.")
    return None
