"""These tests use what lies in the folder above as well."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
