"""The command `bahdanau-tf`; each subcommand is one module.

A module has a docstring, which is its help; GROUPS, its flags; `check(flags)`, which is called
when all flags that it needs are given; and `run(flags)`, which does the work and returns None or
an exit status. It may have `already_done(flags)`: if nothing is left to do, a sentence that says
so. If ARGUMENTS is set, the choices of each argument that is not a flag, these functions also get
these arguments. `needs_tensorflow(flags)` is False if the work needs none. Only the work
imports TensorFlow, so `--help` and mistakes are answered at once.
"""
