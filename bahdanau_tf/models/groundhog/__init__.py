"""Models of the original GroundHog code: weights, vocabularies, its search.

A model trained with the authors' own program (GroundHog's `experiments/nmt`)
consists of a parameter file (`search_model.npz`) and two pickled vocabularies.
`RNNSearch.from_groundhog` and `RNNEncDec.from_groundhog` read the parameters.
Word ids stay those of the files: 0 unused, 1 the unknown word, the end symbol
last.

`original_beam_search` follows the rules of GroundHog's `sample.py`, which
differ from those of `bahdanau_tf.search`, to reproduce the outputs of the
original code.
"""

from bahdanau_tf.models.groundhog.parameters import (
    OriginalResult,
    Parameters,
    assign_weights,
    named_weights,
    original_beam_search,
    read_parameters,
    read_vocabulary,
    rnnencdec_sizes,
    rnnsearch_sizes,
    vocabulary_tokens,
)

__all__ = [
    "OriginalResult",
    "Parameters",
    "assign_weights",
    "named_weights",
    "original_beam_search",
    "read_parameters",
    "read_vocabulary",
    "rnnencdec_sizes",
    "rnnsearch_sizes",
    "vocabulary_tokens",
]
