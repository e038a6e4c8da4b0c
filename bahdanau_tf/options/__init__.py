"""Options of text, model, training and decoding.

They are dataclasses that check their values. TensorFlow is imported only by the methods that need
it, since the command line makes its flags of these classes and must answer at once.
"""

from bahdanau_tf.options.decoding import Decoding as Decoding
from bahdanau_tf.options.model import ModelOptions as ModelOptions, TextOptions as TextOptions
from bahdanau_tf.options.recipe import Recipe as Recipe
