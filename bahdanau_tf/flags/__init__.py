"""What each command takes: its help, its flags, what can be told from them.

A module for each command has a docstring, `define(flags)` and `check(flags)`,
and REQUIRED, the names of flags that the command cannot do without; none
imports TensorFlow, so that `--help` and mistakes are answered at once.
`bahdanau_tf.commands` has what the commands do.
"""
