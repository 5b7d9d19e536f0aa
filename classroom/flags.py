"""What a teacher should look at in a notebook: code from elsewhere, unseen characters, words to a language model.

Words are looked for in six languages (English, German, French, Spanish, Portuguese, Chinese), in whatever letters Unicode
has for the same text. Others pass, as do other words: a flag is a reason to read, and no flag proves nothing.
"""

import ast
import re
import unicodedata

from classroom.code_cells import LONGEST, name_of, parse

FETCHES = {"exec", "eval", "compile", "__import__"}  # called by these names, code is made where nobody reads it
FINDS = {"attrgetter", "methodcaller"}  # and these find a value by its name
FETCHING = {"builtins", "ctypes", "gc", "importlib", "inspect", "marshal", "pickle", "requests", "socket", "subprocess",
            "urllib"}
UNSEEN = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
                    "\u3164\ufeff\uffa0\U000e0000-\U000e01ef]")  # not what joins letters and emoji: people need it
TAGS = re.compile("[\U000e0020-\U000e007e]+")  # a second ASCII, which no font shows
# What speaks to a language model, as pairs of words that stand near each other, without their accents: a pair a language.
LEAVE_OUT = (
    (r"ignore|disregard|forget|override|bypass",
     r"(instruction|prompt|guideline|rule|criteri)\w*|rubric|marking scheme|everything (above|before this)"),
    (r"ignorier\w*|missacht\w*|vergiss|vergessen sie|uberspring\w*",
     r"\w*(anweisung|vorgabe|instruktion|prompt|kriteri)\w*"),
    (r"ignore[rz]?|oublie[rz]?|neglige[rz]?", r"instruction\w*|consigne\w*|bareme|critere\w*"),
    (r"ignor[ae]n?|olvid[ae]n?|omit[ae]n?|descart[ae]n?", r"instruccion\w*|indicacion\w*|rubrica|criterio\w*"),
    (r"ignor[ae]m?|esquec[ae]m?|desconsider[ae]m?", r"instruc\w+|orientac\w+|rubrica|criterio\w*"),
    (r"忽略|无视|忘记|不要理会", r"指令|指示|提示|要求|标准|规则"))
GIVE_ALL = (
    (r"give|award|assign|grant",
     r"(full|maximum|max|top|perfect|highest|all( the)?)\b.{0,12}\b(points|marks?|credit|grade|score)"),
    (r"gib|geben sie|vergib|vergeben sie|erteil\w*", r"(voll|maximal|hochst|alle)\w*\b.{0,12}\b(punkt\w*|note|bewertung)"),
    (r"donne[rz]?|attribue[rz]?|accorde[rz]?|mets|mettez", r"note maximale|maximum (de|des) points|tous les points"),
    (r"dame|dale|otorg\w*|asign[ae]n?|pon(me|le)?|conced[ae]n?",
     r"(nota|calificacion|puntuacion) maxima|maxim[ao]s? (nota|calificacion|puntuacion|puntos)|todos los puntos"),
    (r"de-me|atribua|conceda|coloque", r"nota maxima|pontuacao maxima|maximo de pontos|todos os pontos"),
    (r"给|打|评", r"满分|最高分|全部分数"))
YOU_ARE = (
    (r"you are|you're|dear|(note|message) (to|for)", r"AI|LLM|language model|chat ?bot|assistant|(auto-?)?grader"),
    (r"du bist|sie sind|liebe[rs]?|(hinweis|nachricht) (an|fur)", r"KI|ki-\w+|sprachmodell|assistent|korrektor|chatbot"),
    (r"tu es|vous etes|chere?|(note|message) (a|pour)", r"IA|modele de lang\w+|assistante?|correcteur"),
    (r"eres|usted es|estimad[oa]|(nota|mensaje) para", r"IA|modelo de lenguaje|asistente|evaluador|corrector"),
    (r"voce e|car[oa]|(nota|mensagem) para", r"IA|modelo de linguagem|assistente|avaliador|corretor"),
    (r"你是|亲爱的|致", r"AI|人工智能|语言模型|助手"),
    (r"as an|als|en tant qu|como|作为", r"AI|KI|IA|人工智能"))


def _near(pairs, between):
    """A pattern that finds both words of a pair, with at most ``between`` characters of one sentence between them."""
    return "|".join(rf"(?<![a-z])({first})(?![a-z])[^.。]{{0,{between}}}(?<![a-z])({second})(?![a-z])"
                    for first, second in pairs)


TO_A_MODEL = re.compile("|".join((_near(LEAVE_OUT, 40), _near(GIVE_ALL, 40), _near(YOU_ARE, 20))), re.IGNORECASE)


def made_elsewhere(sources):
    """Where code is made or fetched and not written down to be read: pairs (what does it, number of the cell from 1)."""
    places = [(what, number) for number, source in enumerate(sources, 1)
              for node in ast.walk(parse(source or "") or ast.Module([], [])) if (what := _elsewhere(node))]
    return list(dict.fromkeys(places))


def _elsewhere(node):
    """What of a syntax tree makes or fetches code: its name, or some words, or ""."""
    if name_of(node) in FINDS:
        return name_of(node)
    if isinstance(node, ast.Name):
        return node.id if node.id in FETCHES else ""
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return next((m for m in modules if m.partition(".")[0] in FETCHING
                     or m.startswith(("classroom", "helpers.checks"))), "")
    if calls(node, "getattr") and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant):
        return "getattr with a name that it computes"
    if calls(node, "globals", "vars", "locals") or isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return "a name looked up in a dictionary of names"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "modules":
        return "a name looked up in a dictionary of names"
    return ""


def calls(node, *names):
    """Is it a call of a function by one of these names?"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _untagged(tags):
    return "".join(chr(ord(c) - 0xE0000) for c in tags)


def shown(text):
    """The text with characters that nobody sees as their numbers; letters that only machines read as what they say."""
    text = TAGS.sub(lambda tags: f"[hidden: {_untagged(tags[0])}]", text)
    return UNSEEN.sub(lambda c: f"[U+{ord(c[0]):04X}]", text)


def to_look_at(book):
    """Sentences on what a teacher should see with their own eyes: characters that nobody sees, and text that speaks to a
    language model, wherever in the notebook it is."""
    sentences = []
    for number, cell in enumerate(book.cells, 1):
        where = cell.grade_id if cell.grade_id.startswith("answer") else f"cell {number}"
        if unseen := UNSEEN.findall(cell.source[:LONGEST].removeprefix("\ufeff")):
            numbers = ", ".join(f"U+{ord(c):04X}" for c in dict.fromkeys(unseen))
            sentences.append(f"{where} holds {len(unseen)} characters that nobody sees: {numbers[:80]}")
        plain = TAGS.sub(lambda tags: _untagged(tags[0]), cell.source[:LONGEST])
        plain = " ".join(unicodedata.normalize("NFKC", UNSEEN.sub("", plain)).split())
        if spoken := TO_A_MODEL.search("".join(unicodedata.normalize("NFKD", letter)[0] for letter in plain)):  # no accents
            words = shown(plain[max(0, spoken.start() - 20):spoken.end() + 40])
            sentences.append(f"{where} speaks to a language model: \u201c{words}\u201d")
    return sentences[:20]
