"""What the lessons teach, a module a subject, in the order of the lessons:

    embeddings       word vectors, neighbours, analogies                          lesson 01
    phrases          phrases such as "bear country", learned by three matrices   lesson 04
    attention        NumPy: softmax to multi-head attention, masks, positions     lessons 02-08
    scenes, heads    coloured scenes for one head or two; heads named by scores   lesson 07
    seq2seq          the recurrent encoder-decoder that attention was made for    lesson 03
    transformer      torch: attention, block, encoder, decoder, whole models      lessons 09-18
    translation      the English-French grammar                                   lesson 10
    grammars         the grammar whose entropy is known; words to ids and back    lessons 10-19
    reversing        digits in reverse, learned with one divisor or another       lesson 05
    training         the training loop                                            lessons 03-19
    inside           what heads do: rollout, scores, ablation, patching, lens     lessons 12-19
    minilm           all-MiniLM-L6-v2, a real encoder                             lessons 00, 07, 12, 13
    course_text      the notes and the paragraphs that lesson 13 searches
    efficient        attention that costs less, and what it costs                 lesson 14
    tokens, texts    byte-pair encoding; real text to train on                    lesson 15
    smollm2          SmolLM2-135M-Instruct, a real chat model                     lessons 14-18
    adapters         low-rank adapters: teaching it something new                 lesson 18
    reward           learning from points: policy gradient, leash, best of n      lesson 19
    vision           images as sentences of patches, a vision transformer         lesson 20
    plots            what all figures share
    words            a reader's own words, and the sentence where they cannot be used

Beside them are five rooms, and no room imports from one below it in this list:

    store/           files of models and of the learner: finding, verifying, locking; a learner's settings
    (the modules above)
    sealed/          models with a planted rule: the hunt of lesson 17, and assignment 7
    page/            what a notebook shows around the lesson: map, warm-up, predict, steps, tables, claims, record
    checks/          the exercises' checkers, a module a lesson
    measure/         how an experiment measures a claim and decides it

Importing ``helpers`` imports nothing heavy; from then on, what the terminal or file behind ``print`` cannot show is a
question mark there, as in Windows' cp1252, and stops nobody. ``former`` keeps the names that modules had before these rooms.
"""

import io
import sys

from helpers import former

former.install()
if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
    sys.stdout.reconfigure(errors="replace")
