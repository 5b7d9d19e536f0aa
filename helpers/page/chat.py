"""A chat box in the notebook: words appear as the model writes them, and each shows what else it might have been.

    chat.box(model, "What is the capital of France?")

Without a kernel the stored answers to the given questions stand there.
"""

import threading
import time
from html import escape

import torch

from helpers import smollm2
from helpers.page import show as showing
from helpers.store import progress
from helpers.words import text_in

_STYLE = "font-family:sans-serif;font-size:14px;line-height:1.5;"


class Conversation:
    """What was said so far, and the answer that is being written.

    ``system``: a message that stands before all others, in place of the model's own; ``options``: as for `smollm2.stream`.
    ``messages`` grows by a question and an answer with each call of ``ask``; of each answer ``words`` keeps a list of (text,
    the likeliest tokens at this place, seconds since the question). ``read``: how many tokens of a long prompt are read, and
    how many it has.
    """

    def __init__(self, model, system=None, **options):
        self.model, self.system, self.options = model, system, options
        self.clear()

    def clear(self):
        """Begin again."""
        self.messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        self.words, self.halted, self.read, self.memory = [], False, (0, 0), {}

    def ask(self, question, changed=lambda: None, **options):
        """Put a question and take down the answer; ``changed()`` is called at once, after every piece of a long prompt and
        after every token.

        ``halted = True`` ends it, and so does an error; before the first word the question is then taken back.
        """
        self.messages.append({"role": "user", "content": question})
        self.halted, self.read, words = False, (0, 0), []
        self.words.append(words)

        def reading(*tokens):
            self.read = tokens
            changed()
            return self.halted

        options = {"memory": self.memory, "reading": reading} | self.options | options
        try:
            changed()
            for step in smollm2.stream(self.model, list(self.messages), **options):
                words.append((step.text, self._likeliest(step.logits), step.seconds))
                changed()
                if self.halted:
                    break
        except BaseException:
            self.halted = True
            raise
        finally:
            if self.halted and not words:
                del self.messages[-1], self.words[-1]
            else:
                self.messages.append({"role": "assistant", "content": "".join(text for text, _, _ in words)})

    def _likeliest(self, logits):
        """The five likeliest tokens: pairs (text, probability at temperature 1)."""
        top, bytes_of = torch.softmax(logits, dim=0).topk(5), self.model.tokens.bytes_of
        return [(_visible(bytes_of(i)), p)
                for i, p in zip(top.indices.tolist(), top.values.tolist(), strict=True)]

    def html(self):
        """The conversation; the mouse on a word shows what else might have stood there."""
        parts = []
        asked = [message["content"] for message in self.messages if message["role"] == "user"]
        answered = sum(message["role"] == "assistant" for message in self.messages)
        for i, (question, words) in enumerate(zip(asked, self.words, strict=True)):
            answer = "".join(f"<span title='{escape(_in_a_line(likeliest), quote=True)}'>{escape(text)}</span>"
                             for text, likeliest, _ in words)
            if i < answered and not words:
                answer = "<i>(it ended its turn at once)</i>"
            parts.append(_bubble("you", "rgba(0,114,178,.09)", escape(question)) + _bubble("model", "none", answer))
        return f"<div style='{_STYLE}max-width:760px'>" + "".join(parts) + "</div>"

    def text(self):
        """The conversation as plain text."""
        who = {"user": "you", "assistant": "model", "system": "system message"}
        return "\n".join(f"{who[m['role']]}: {m['content']}" for m in self.messages)


def box(model, *questions, **options):
    """Show a chat box whose conversation begins with ``questions``; returns the `Conversation`.

    ``options``: as for `Conversation`; with a ``nucleus`` there is a slider for p. Without a kernel, what the model
    answered stands there.
    """
    if options.get("system"):
        text_in(options["system"], like="You answer in one short sentence.")
    talk = Conversation(model, **options)
    for question in questions:
        talk.ask(text_in(question))
    if progress.live():
        _Box(talk, "nucleus" in options).show()
    else:
        showing.display(talk.html(), talk.text())
    return talk


class _Box:
    """The widgets around a `Conversation`: its page, a line to type in, buttons, sliders, and what is told below."""

    def __init__(self, talk, with_nucleus):
        import ipywidgets as w

        self.talk, self.page, self.below = talk, w.HTML(talk.html()), w.HTML()
        self.line = w.Text(placeholder="Ask something, then press Enter", continuous_update=False, layout={"width": "520px"})
        self.send, self.stop, self.clear = (w.Button(description=name, layout={"width": "72px"})
                                            for name in ("Send", "Stop", "Clear"))
        self.temperature = w.FloatSlider(0.0, min=0, max=1.5, step=0.1, description="temperature",
                                         style={"description_width": "90px"})
        self.p = w.FloatSlider(1.0, min=0.05, max=1, step=0.05, description="nucleus p", style={"description_width": "90px"})
        self.sliders = [self.temperature, self.p] if with_nucleus else [self.temperature]
        self.busy(False)
        self.send.on_click(self.start)
        self.line.on_msg(lambda _, message, __: message.get("event") == "submit" and self.start())  # Enter
        self.stop.on_click(lambda _: setattr(self.talk, "halted", True))
        self.clear.on_click(self.begin_again)

    def show(self):
        import ipywidgets as w
        from IPython.display import display

        buttons = w.HBox([self.line, self.send, self.stop, self.clear])
        display(w.VBox([self.page, buttons, w.HBox(self.sliders), self.below]))

    def busy(self, answering):
        """While an answer is written only Stop can be pressed, and otherwise all but Stop."""
        self.send.disabled = self.clear.disabled = answering
        self.stop.disabled = not answering

    def tell(self, html):
        self.below.value = html and f"<div style='{_STYLE}'>{html}</div>"

    def start(self, _=None):
        """Answer in a thread, so that Stop is heard."""
        if not self.send.disabled:
            self.busy(True)
            threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        """Put the question that stands in the line; whatever goes wrong is told below."""
        talk = self.talk
        try:
            time.sleep(0.2)  # what was typed arrives after the news of Enter
            question, self.line.value = self.line.value.strip(), ""
            if question:
                talk.ask(question, self.changed, temperature=self.temperature.value, p=self.p.value,
                         seed=len(talk.messages))
                if not (talk.words and talk.words[-1]):  # stopped while it read
                    self.tell("")
        except smollm2.TooLong as error:
            self.tell(escape(str(error)))
        except Exception as error:  # in a thread nobody else would tell it
            self.tell(escape(f"{type(error).__name__}: {error}"))
        finally:
            self.page.value = talk.html()
            self.busy(False)

    def changed(self):
        """Show the conversation so far, and below it how the answer goes on."""
        self.page.value, words, (done, total) = self.talk.html(), self.talk.words[-1], self.talk.read
        if words:
            seconds = words[-1][2] - words[0][2]
            rate = f" · {(len(words) - 1) / seconds:.0f} tokens a second" if seconds else ""
            self.tell(f"{len(words)} tokens{rate}<br>The likeliest at the last place: {escape(_in_a_line(words[-1][1]))}")
        else:
            self.tell(f"It reads: {done:,} of {total:,} tokens. Stop ends it." if total else "")

    def begin_again(self, _):
        self.talk.clear()
        self.page.value = self.talk.html()
        self.tell("")


def _bubble(who, colour, words):
    return (f"<div style='margin:6px 0;padding:6px 12px;border:1px solid #9aa5ad;border-radius:8px;background:{colour};"
            f"white-space:pre-wrap'><b>{who}</b>&ensp;{words}</div>")


def _in_a_line(likeliest):
    return "  ·  ".join(f"{word} {share:.0%}" for word, share in likeliest)


def _visible(part):
    """The bytes of a token as a reader sees them: half a character in hexadecimal digits."""
    try:
        word = part.decode()
    except UnicodeDecodeError:
        return f"(half a character: {part.hex(' ')})"
    return word.replace(" ", "␣").replace("\n", "⏎") or "(end)"
