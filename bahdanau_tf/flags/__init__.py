"""The flags of the commands: help, definitions, checks.

The module of a command has a docstring, which is its help, `define(flags)`,
`check(flags)`, and REQUIRED, the names of the flags that it needs. No module
imports TensorFlow, so that `--help` and mistakes are answered at once. What the
commands do is in `bahdanau_tf.commands`.
"""
