"""What the lessons share: references, figures, checkers, data and the pretrained model.

Each lesson imports the modules it needs, for instance ``from helpers.embeddings import WordVectors``.
Importing ``helpers`` itself imports nothing else.
"""
