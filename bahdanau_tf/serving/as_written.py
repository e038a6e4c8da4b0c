"""Keeps TensorFlow's optimizer of graphs, Grappler, from those of an export.

When a signature is first called, a server's session optimizes each function
twice: in the library of its graph, and when a call of it is prepared. That
takes two thirds of the first call's time. The steps are not faster by it, since
the graphs are written without what it would remove.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

# Grappler leaves such functions to tf.data, which optimizes only datasets.
_OF_DATA = "_tf_data_function"
_CONFIG = "config_proto"  # of a call, with which the function is prepared


def run_as_written(functions: Iterable[Any]) -> None:
    """Marks FunctionDefs, and the calls in them."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    serialized = config.SerializeToString()
    for function in functions:
        function.attr[_OF_DATA].b = True
        for node in function.node_def:
            if _CONFIG in node.attr:
                node.attr[_CONFIG].s = serialized
