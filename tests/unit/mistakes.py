"""Does a checker name each mistake as itself? For the exercises of the lessons and the tasks of the assignments."""

from unittest import mock

from helpers.checks import core


def seeds(config):
    """The seeds of the inputs: one of them, ten under --weekly."""
    return range(10 if config.getoption("weekly", False) else 1)


def misnamed(exercise, config):
    """One line for each mistake and seed at which the checker says something else."""
    found = []
    for seed in seeds(config):
        cases = core.draw_cases(exercise, seed)
        with mock.patch.multiple(core, call=_once(core.call), draw_cases=lambda *_, cases=cases: cases):
            for mistake in exercise.misconceptions:
                outcome = core.evaluate(exercise, mistake.function, seed=seed)
                if (outcome.status, outcome.misconception) != ("wrong", mistake.id) or mistake.hint not in outcome.message:
                    found.append(f"{exercise.name}, {mistake.id}, seed {seed}: {outcome}")
                raised = {core.call(mistake.function, case.args, core.SECONDS, exercise.use).error for case in cases}
                if len(raised) == 1 and None not in raised:  # anything that stops with this error would be named so
                    found.append(f"{exercise.name}, {mistake.id}, seed {seed}: raises {raised.pop().__name__} everywhere")
    return found


def _once(call):
    """``core.call``, which calls a function once on each input, and not again for each mistake it is compared with."""
    results = {}

    def remembered(function, args, *others):
        key = function, id(args)
        if key not in results:
            results[key] = call(function, args, *others)
        return results[key]

    return remembered
