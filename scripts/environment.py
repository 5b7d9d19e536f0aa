"""Make the course's environment in .venv, then do VERB there: python scripts/environment.py VERB ... (see setup.py).

This file has no newer syntax than Python 2.7's, so that an old Python gets as far as saying that it is too old.
"""
import os
import sys

if sys.version_info < (3, 10):
    sys.stderr.write("Python 3.10 or newer is needed and this is {}.{}: install one from python.org or conda, then run the"
                     " same command again.\n".format(*sys.version_info[:2]))
    sys.exit(1)

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scripts import setup

sys.exit(setup.main(sys.argv[1:]))
