"""The subcommands of `bahdanau-tf`, one module each.

`bahdanau_tf.flags` describes what each does and which flags it takes.
"""
