"""Exports a saved translator: export.py SAVED_TRANSLATOR [BASE_FOLDER]."""

import sys

from bahdanau_tf import Translator

if not 2 <= len(sys.argv) <= 3:
    sys.exit(__doc__)
base = sys.argv[2] if len(sys.argv) == 3 else "export/models/translator"
try:
    print(Translator.load(sys.argv[1]).export(base))
except (OSError, ValueError) as error:
    sys.exit(f"export: {error}")
