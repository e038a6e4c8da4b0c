"""The command `bahdanau-tf`; each subcommand is one module.

A module has a docstring, which is its help, `define(flags)`, `check(flags)`, REQUIRED,
the names of the flags that it needs, and `run(flags)`, which does the work. Only the
work imports TensorFlow, so `--help` and mistakes are answered at once.
"""
