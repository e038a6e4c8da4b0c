"""Translation without TensorFlow: in ONNX Runtime, and in a browser.

A translator reads what `bahdanau-tf export --format=onnx` wrote. It needs NumPy, onnxruntime and
sentencepiece. Its search gives the translations and scores of the graph's, see
`bahdanau_tf.search`. Names are imported when they are first used: only writing needs TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.runtime.onnx import export_runtime as export_runtime
    from bahdanau_tf.runtime.page import write_module as write_module, write_page as write_page
    from bahdanau_tf.runtime.translator import Translator as Translator

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.py")
__all__ = sorted(_homes)
