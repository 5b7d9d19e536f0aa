"""A small picture for each lesson, and the map of the course that they make."""

from html import escape
from pathlib import Path

from helpers.page import course
from helpers.page.sheet import COLOURS, MAP, drawn, paint
from helpers.store import progress

NUMBERS = sorted(MAP["lessons"])
STYLE = Path(__file__).with_name("course_map.css")


def picture(number, size=96):
    """The picture of lesson ``number``, "00" to "20", as SVG with its own light ground. Raises KeyError for another."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="{size}" height="{size}" '
            f'aria-hidden="true"><rect x="1" y="1" width="62" height="62" rx="14" '
            f'fill="{paint("built")}"/><g transform="translate(8 8)" fill="none" stroke="currentColor" '
            f'color="{paint("built-edge")}" stroke-linecap="round" stroke-linejoin="round">'
            f'{drawn(MAP["lessons"][number]["picture"])}</g></svg>')


def passed(lesson):
    """How many exercises of ``lesson`` have been passed, by the file that remembers it."""
    return sum(name in progress.load("exercises") for name in lesson.exercises)


def predicted(lesson):
    """Whether a prediction of ``lesson`` has been made, by the file that remembers it."""
    return any(key.startswith(f"{lesson.number}-") for key in progress.load("predictions"))


def course_map():
    """The course as a path of pictures, each a link to its lesson, with what one can do then, minutes, and what has been
    passed. A lesson without exercises is filled when a prediction has been made.

    Returns it as HTML, which says the same where <style> and style attributes are taken out, and as plain text.
    """
    stops, lines = [], []
    for lesson in course.LESSONS.values():
        n_passed, n = passed(lesson), len(lesson.exercises)
        minutes = f"{lesson.minutes} minutes"
        count = f"{n_passed} of {n} exercises passed" if n_passed else f"{n} exercises" if n else ""
        if not n and predicted(lesson):
            count = "✓ prediction made"
        details = " · ".join(filter(None, [minutes, "✓ all passed" if n and n_passed == n else count]))
        share = round(100 * n_passed / n) if n else 100 * predicted(lesson)
        bar = f"linear-gradient(90deg,{COLOURS['built-edge'][0]} {share}%,#8a949e55 {share}%)"
        stops.append(f'<li><a href="{lesson.file}">{picture(lesson.number, 64)}</a><i style="background:{bar}"></i>'
                     f'<p><a href="{lesson.file}"><b>{lesson.number} · {escape(lesson.title)}</b></a><br>'
                     f'{escape(lesson.afterwards)}<br><small>{details}</small></p></li>')
        lines.append(f"{lesson.number}  {lesson.title}: {lesson.afterwards} ({details})")
    style = STYLE.read_text(encoding="utf-8")
    return f'<div class="course-map"><style>\n{style}</style><ol>{"".join(stops)}</ol></div>', "\n".join(lines)
