"""The subcommands of `bahdanau-tf`, one module each."""
