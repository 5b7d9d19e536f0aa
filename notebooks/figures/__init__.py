"""How the figures of the lessons are drawn: a module a lesson, a function a figure. A lesson calls them in one line.

What several lessons draw is in ``helpers.plots``; what computes, and what a reader should change, stays in the lesson.
"""
