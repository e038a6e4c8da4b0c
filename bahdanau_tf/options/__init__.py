"""What a training can be told: text, model, recipe.

These are plain values that know what they take. TensorFlow is imported by
what they make: the command line reads its flags from here and answers at once.
"""

from bahdanau_tf.options.decoding import Decoding
from bahdanau_tf.options.model import ModelOptions
from bahdanau_tf.options.recipe import Recipe
from bahdanau_tf.options.text import TextOptions

__all__ = ["Decoding", "ModelOptions", "Recipe", "TextOptions"]
