"""Lets `python -m bahdanau_tf` be the command `bahdanau-tf`."""

from __future__ import annotations

import sys

from bahdanau_tf.cli import main

if __name__ == "__main__":
    sys.exit(main())
