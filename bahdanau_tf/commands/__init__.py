"""The command `bahdanau-tf`; each subcommand is one module.

A module has a docstring, which is its help, GROUPS, its flags, `check(flags)`
and `run(flags)`, which does the work. Only the
work imports TensorFlow, so `--help` and mistakes are answered at once.
"""
