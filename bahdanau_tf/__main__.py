"""Makes `python -m bahdanau_tf` the same as the command `bahdanau-tf`."""

from __future__ import annotations

import sys

from bahdanau_tf.cli import main

if __name__ == "__main__":
    sys.exit(main())
