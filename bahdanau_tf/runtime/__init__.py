"""Translates without TensorFlow what `bahdanau-tf export --format=onnx` wrote.

It needs NumPy, onnxruntime and sentencepiece. The search gives the translations and scores of
the graph's, see `bahdanau_tf.search`.
"""

from bahdanau_tf.runtime.translator import Translator as Translator
