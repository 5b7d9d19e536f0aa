"""What the lessons share: references, figures, checkers, data and the pretrained models.

Each lesson imports the modules it needs, for instance ``from helpers.embeddings import WordVectors``.
Importing ``helpers`` itself imports nothing else. A map, in the order of the lessons:

    embeddings       word vectors, neighbours, analogies                          lesson 01
    phrases          phrases such as "bear country", learned by three matrices   lesson 04
    attention        NumPy: softmax to multi-head attention, masks, positions     lessons 02-08
    seq2seq          the recurrent encoder-decoder that attention was made for    lesson 03
    transformer      torch: attention, block, encoder, decoder, whole models      lessons 09-18
    vocabularies     words to ids and back                                        lessons 10-19
    translation      the English-French grammar                                   lesson 10
    grammars         the grammar whose entropy is known                           lessons 11-19
    training         the training loop                                            lessons 03-19
    together         the same for several small models at once, in experiments
    inside           what heads do: rollout, scores, ablation, patching, lens     lessons 12-19
    finds, sealed    a find as a picture; models with a planted rule              lesson 17
    attention_views  BertViz's views, without a network                           lesson 12
    minilm           all-MiniLM-L6-v2, a real encoder                             lessons 00, 07, 12, 13
    course_text      the notes and the paragraphs that lesson 13 searches
    efficient        attention that costs less, and what it costs                 lesson 14
    tokens, texts    byte-pair encoding; real text to train on                    lesson 15
    smollm2, chat    SmolLM2-135M-Instruct, a real chat model; a box to talk      lessons 14-18
    gguf             reads the file that it comes in
    adapters         low-rank adapters: teaching it something new                 lesson 18
    reward           learning from points: policy gradient, leash, best of n      lesson 19

    checks           the exercises' checkers, a module a lesson
    predictions      predict and reveal
    questions        the question bank, and the three at the top of a lesson
    inventory        24 of them, before and after the course
    progress         the file that remembers all of it
    achievement      a page of it, to print                                       lesson 19
    plots, steps     figures; a computation step by step
    show             notes, tables, the map
    drawing, sheet   you are here: the whole model, today's part lit; how it is drawn
    pictures         a small picture for each lesson, and the map of the course
    claims           what people say, and what was measured
    course           lessons, exercises and claims, from data/course.toml
    model_files      finds the models' files and verifies them
    files, colab     writes a file whole and locks one; the first cell on Google Colab
    corpora          the old name of grammars, in notebooks that classes were given
    experiment       how an experiment measures a claim and decides it
    digest, jitter   what a measurement was made with; another processor, emulated
"""
