"""The ONNX graphs of a model, made from its weights.

Converters are not used: tf2onnx reverses the states of the backward encoder, and none converts the
search. With `int8` a matrix W has columns w = s q, with q in [-63, 63] and a scale s for each
column. The features x that it is multiplied with are rounded to 8 bits at each call; their scale
does not depend on other sentences, but on a bound, 1 for states, or else on the row's largest |x|.
The eighth bit of q stays unused because products of pairs overflow 16 bits on processors without
VNNI.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bahdanau_tf.system import files
from bahdanau_tf.translation.arrays import context_terms, copying, halves, values_of, word_terms
from bahdanau_tf.translation.saved import rounded

OPSET, IR_VERSION = 17, 8  # of ONNX 1.12, 2022
FLOAT, INT64 = 1, 7  # ONNX codes of dtypes
MICROSOFT = "com.microsoft"  # the domain of MatMulIntegerToFloat
SMALLEST = 1e-9  # in place of 0 if all features of a row are 0
Array: TypeAlias = Any  # of NumPy
Value: TypeAlias = Any  # the name of a value in a graph, or a list of names
Match: TypeAlias = tuple[str, str, str]


class _Graph:
    """Builds an ONNX graph; values are names."""

    def __init__(self, int8: bool) -> None:
        from onnx import helper

        self.helper = helper
        self.int8 = int8
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.names: dict[str, str] = {}  # of outputs, by value

    def input(self, name: str, dtype: int, *shape: int | str) -> str:
        """Declares an input; a size that varies is a name."""
        self.inputs.append(self.helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name: str, value: str, dtype: int, *shape: int | str) -> None:
        """Declares an output."""
        makers = [node for node in self.nodes if value in node.output]
        if makers and value not in self.names:  # else it is an input, or another output
            self.names[value] = name
        else:
            self.add("Identity", value, outputs=[name])
        self.outputs.append(self.helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, array: Array) -> str:
        """Stores an array."""
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def whole(self, *numbers: int) -> str:
        """Stores whole numbers, such as axes."""
        return self.constant(np.array(numbers, np.int64))

    def add(
        self, kind: str, *inputs: str, outputs: list[str] | int = 1, **attributes: Any
    ) -> Value:
        """Adds a node; returns the name of its output, or a list of several."""
        start = f"v{len(self.nodes)}"
        names = outputs if isinstance(outputs, list) else [f"{start}_{n}" for n in range(outputs)]
        self.nodes.append(self.helper.make_node(kind, inputs, names, start, **attributes))
        return names[0] if len(names) == 1 else names

    def split(self, value: str, *sizes: int) -> Value:
        """Parts along the last axis."""
        return self.add("Split", value, self.whole(*sizes), outputs=len(sizes), axis=-1)

    def product(
        self, x: str, kernel: Array, bias: Array | None = None, largest: float | None = 1.0
    ) -> Value:
        """x W + b; with `int8` in 8 bits. `largest` bounds |x|; computed per row if None."""
        if not self.int8:
            result = self.add("MatMul", x, self.constant(kernel))
            return result if bias is None else self.add("Add", result, self.constant(bias))
        if largest is None:
            size = self.add("ReduceMax", self.add("Abs", x), axes=[-1], keepdims=1)
            size = self.add("Max", size, self.constant(np.float32(SMALLEST)))
            result = self.add("Mul", self.product(self.add("Div", x, size), kernel), size)
            return result if bias is None else self.add("Add", result, self.constant(bias))
        bytes_, scale = rounded(kernel, axis=0)
        step = self.constant(np.float32(max(largest, SMALLEST) / 127))
        zero = self.constant(np.uint8(128))
        x = self.add("QuantizeLinear", x, step, zero)
        inputs = [x, self.constant(bytes_), step, self.constant(scale.ravel()), zero, ""]
        inputs += [self.constant(bias)] if bias is not None else []
        return self.add("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)

    def table(self, table: Array) -> tuple[str, str]:
        """A matrix whose rows `rows` looks up: its name, and that of the scales if any."""
        if not self.int8:
            return self.constant(table), ""
        bytes_, scale = rounded(table, axis=1)
        return self.constant(bytes_), self.constant(scale)

    def rows(self, table: tuple[str, str], ids: str) -> Value:
        """Looks up rows."""
        values, scales = table
        rows = self.add("Gather", values, ids)
        if not scales:
            return rows
        return self.add("Mul", self.add("Cast", rows, to=FLOAT), self.add("Gather", scales, ids))

    def stored(self, array: Array) -> Value:
        """A matrix for an operation that wants floats; ONNX Runtime computes it once."""
        if not self.int8:
            return self.constant(array)
        bytes_, scale = rounded(array, axis=-1)
        values = self.add("Cast", self.constant(bytes_), to=FLOAT)
        return self.add("Mul", values, self.constant(scale))

    def write(self, path: Path, vocabulary_size: int) -> None:
        """Writes the graph, which reads or writes so many ids."""
        import onnx

        for node in self.nodes:
            for values in (node.input, node.output):
                values[:] = [self.names.get(value, value) for value in values]
        graph = self.helper.make_graph(
            self.nodes, path.stem, self.inputs, self.outputs, self.weights
        )
        opsets = [self.helper.make_opsetid("", OPSET), self.helper.make_opsetid(MICROSOFT, 1)]
        model = self.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        self.helper.set_model_props(model, {"vocabulary_size": str(vocabulary_size)})
        onnx.checker.check_model(model)
        files.write_atomically(path, model.SerializeToString())


def write_encoder(model: Any, path: Path, int8: bool) -> None:
    """Writes the graph from a source to the memory and the first state."""
    graph = _Graph(int8)
    source = graph.input("source", INT64, "B", "T")
    embedded = graph.rows(graph.table(_embeddings(model.source_embedding)), source)
    is_word = graph.add("Greater", source, graph.constant(np.array(0, np.int64)))
    lengths = graph.add("ReduceSum", graph.add("Cast", is_word, to=6), graph.whole(1), keepdims=0)
    forward, backward = (layer.cell for layer in model.encoder.stack[0])
    n = forward.units
    annotations, last = graph.add(
        "GRU",
        graph.add("Transpose", embedded, perm=[1, 0, 2]),
        *_gru(graph, forward, backward),
        lengths,
        outputs=2,
        hidden_size=n,
        direction="bidirectional",
        linear_before_reset=0,
    )  # [T, 2, B, n], [2, B, n]
    annotations = graph.add("Transpose", annotations, perm=[2, 0, 1, 3])
    annotations = graph.add("Reshape", annotations, graph.whole(0, 0, 2 * n))
    start = graph.add("Gather", last, graph.constant(np.array(1, np.int64)), axis=0)
    bridge = values_of(model.bridge.kernel, model.bridge.bias)
    attention = model.decoder.attention
    keys = attention.key_projection
    bias = None if keys.bias is None else values_of(keys.bias)
    keys = graph.product(annotations, values_of(keys.kernel), bias)
    kernel, bias = context_terms(model)
    never = graph.constant(np.finfo(np.float32).min)
    missing = graph.add("Where", is_word, graph.constant(np.float32(0)), never)
    keys = graph.add("Unsqueeze", keys, graph.whole(1))
    graph.output("keys", keys, FLOAT, "B", 1, "T", attention.units)
    terms = graph.product(annotations, kernel, bias)
    graph.output("terms", terms, FLOAT, "B", "T", kernel.shape[1])
    graph.output("mask", graph.add("Unsqueeze", missing, graph.whole(1)), FLOAT, "B", 1, "T")
    state = graph.add("Tanh", graph.product(start, *bridge))
    graph.output("state", state, FLOAT, "B", bridge[0].shape[1])
    if model.copying is not None:
        _add_copy_memory(graph, source, model.copying)
    graph.write(path, model.source_vocabulary_size)


def _add_copy_memory(graph: _Graph, source: str, layer: Any) -> None:
    """What `Copying.memory` returns, and the first state; words come as "copied"."""
    zero, one = (graph.constant(np.float32(number)) for number in (0, 1))
    none, last = graph.whole(0), graph.whole(2)
    codes = graph.add("Gather", graph.constant(layer.copies.numpy().astype(np.int64)), source)
    is_word = graph.add("Not", graph.add("Equal", codes, none))
    words = graph.add("Where", is_word, graph.add("Abs", codes), graph.whole(-1))
    across = graph.add("Unsqueeze", words, graph.whole(1))
    same = graph.add("Equal", graph.add("Unsqueeze", words, last), across)
    same = graph.add("And", same, graph.add("Unsqueeze", is_word, graph.whole(1)))
    same = graph.add("Cast", same, to=FLOAT)
    count = graph.add("CumSum", same, graph.constant(np.array(2, np.int64)))
    first = graph.add("Where", graph.add("Equal", count, one), same, zero)
    is_first = graph.add("Greater", graph.add("ReduceMax", first, axes=[1], keepdims=0), zero)
    copied = graph.add("Where", is_first, words, none)

    def shifted(value: str, start: int, end: int) -> Value:
        return graph.add("Slice", value, *map(graph.whole, (start, end, 1)))

    def next_of(value: str, *pads: int) -> Value:
        return graph.add("Pad", shifted(value, 1, 2**31), graph.whole(*pads))

    continues = graph.add("Cast", graph.add("Less", codes, none), to=FLOAT)
    continues = graph.add("Unsqueeze", next_of(continues, 0, 0, 0, 1), last)
    after = graph.add("Mul", next_of(first, 0, 0, 0, 0, 1, 0), continues)
    fates = graph.add("Concat", continues, graph.add("Sub", one, continues), axis=2)
    padded = graph.add("Pad", words, graph.whole(0, 2, 0, 0), graph.constant(np.array(-1)))
    suffixes = [shifted(padded, start, end) for start, end in ((2, 2**31), (1, -1), (0, -2))]
    suffixes = [graph.add("Unsqueeze", x, graph.whole(1, 2)) for x in suffixes]
    graph.output("copied", copied, INT64, "B", "T")
    graph.output("suffixes", graph.add("Concat", *suffixes, axis=2), INT64, "B", 1, 3, "T")
    graph.output("first", first, FLOAT, "B", "T", "T")
    graph.output("after", after, FLOAT, "B", "T", "T")
    graph.output("fates", graph.add("Unsqueeze", fates, graph.whole(1)), FLOAT, "B", 1, "T", 2)
    sizes = graph.add("Shape", source)
    alpha = graph.add("ConstantOfShape", sizes)
    pair = graph.add("Concat", graph.add("Shape", source, end=1), last, axis=0)
    graph.output(
        "last", graph.add("Cast", graph.add("ConstantOfShape", pair), to=INT64), INT64, "B", 2
    )
    graph.output("alpha", alpha, FLOAT, "B", "T")


def _match(graph: _Graph, ids: str, weights: str) -> Match:
    """m_i, α_i and f_i of `Copying.match`; adds what it reads to the inputs."""
    last = graph.input("last", INT64, "B", "K", 2)
    alpha = graph.input("alpha", FLOAT, "B", "K", "T")
    suffixes = graph.input("suffixes", INT64, "B", 1, 3, "T")
    first, after = (graph.input(name, FLOAT, "B", "T", "T") for name in ("first", "after"))
    fates = graph.input("fates", FLOAT, "B", 1, "T", 2)
    words = graph.add("Concat", graph.add("Unsqueeze", ids, graph.whole(2)), last, axis=2)
    same = graph.add("Equal", suffixes, graph.add("Unsqueeze", words, graph.whole(3)))
    parts = graph.add("Cast", same, to=FLOAT)
    parts = graph.add("Split", parts, graph.whole(1, 1, 1), outputs=3, axis=2)
    for number in (1, 2):
        parts[number] = graph.add("Mul", parts[number - 1], parts[number])
    runs = graph.add("Concat", *parts, axis=2)
    marks = graph.add("Min", graph.add("MatMul", runs, fates), graph.constant(np.float32(1)))
    lengths = graph.constant(np.array(copying.LENGTHS, np.float32)[:, None])
    near = graph.add("ReduceSum", graph.add("Mul", runs, lengths), graph.whole(2), keepdims=0)
    beside = graph.add("Add", alpha, graph.constant(np.float32(copying.NEAR)))
    follower = graph.add("MatMul", graph.add("Mul", near, beside), after)
    total = graph.add("ReduceSum", follower, graph.whole(2), keepdims=1)
    follower = graph.add("Div", follower, graph.add("Max", total, _tiny(graph)))
    graph.output("alpha_after", weights, FLOAT, "B", "K", "T")
    start, end = (graph.whole(number) for number in (0, 2))
    graph.output("last_after", graph.add("Slice", words, start, end, end), INT64, "B", "K", 2)
    marks = graph.add("Reshape", marks, graph.whole(0, 0, copying.MARKS))
    return marks, graph.add("MatMul", weights, first), follower


def _tiny(graph: _Graph) -> str:
    return graph.constant(np.float32(copying.TINY))


def _add_log_odds(graph: _Graph, layer: Any, features: str, match: Match) -> None:
    """The odds of `Copying.copied`, which are not rounded."""
    marks, pointer, follower = match
    kernel, of_marks, bias = values_of(layer.kernel, layer.mark_kernel, layer.bias)
    gates = graph.add("MatMul", features, graph.constant(kernel))
    gates = graph.add("Add", gates, graph.add("MatMul", marks, graph.constant(of_marks)))
    gates = graph.add("Add", gates, graph.constant(bias))
    most = graph.add("ReduceMax", gates, axes=[-1], keepdims=1)
    shares = graph.split(graph.add("Exp", graph.add("Sub", gates, most)), 1, 1)
    parts = zip(shares, (pointer, follower), strict=True)
    odds = graph.add("Add", *(graph.add("Mul", *part) for part in parts))
    odds = graph.add("Log", graph.add("Max", odds, _tiny(graph)))
    graph.output("log_odds", graph.add("Add", most, odds), FLOAT, "B", "K", "T")


def _embeddings(layer: Any) -> Array:
    table = values_of(layer.embeddings)
    return table.copy() if layer.bias is None else table + values_of(layer.bias)


def _gru(graph: _Graph, *cells: Any) -> list[str]:
    """The weights of cells, one for each direction, as ONNX' GRU has them.

    Its z gates the old state, σ(-x) = 1 - σ(x).
    """
    parts = []
    for cell in cells:
        n = cell.units
        sign = np.repeat(np.array([-1, 1, 1], np.float32), n)
        kernel, recurrent, bias = values_of(cell.kernel, cell.recurrent_kernel, cell.projected_bias)
        both = np.concatenate([bias * sign, np.zeros(3 * n, np.float32)])
        parts.append(((kernel * sign).T, (recurrent * sign).T, both))
    kernels, recurrents, biases = map(np.stack, zip(*parts, strict=True))
    return [graph.stored(kernels), graph.stored(recurrents), graph.constant(biases)]


def write_step(model: Any, path: Path, int8: bool) -> None:
    """Writes the graph of a step of the decoder."""
    graph = _Graph(int8)
    decoder, readout = model.decoder, model.readout
    n, p = decoder.cell.units, decoder.cell.projection_size
    t = 2 * readout.hidden_size
    ids = graph.input("ids", INT64, "B", "K")
    state = graph.input("state", FLOAT, "B", "K", n)
    keys = graph.input("keys", FLOAT, "B", 1, "T", decoder.attention.units)
    terms = graph.input("terms", FLOAT, "B", "T", p + t)
    mask = graph.input("mask", FLOAT, "B", 1, "T")
    table = _embeddings(model.target_embedding)
    table[0] = 0.0  # in place of E y_0, see `BackwardBridge`
    embedded = graph.rows(graph.table(table), ids)
    cell = decoder.cell
    kernel, bias = word_terms(model)
    of_word = graph.product(embedded, kernel, bias, largest=np.abs(table).max())
    projected, of_previous = graph.split(of_word, p, t)

    def attend(query: str) -> tuple[str, str, str]:
        """The terms of the cell and of the readout, and α."""
        attention = decoder.attention
        query = graph.product(query, values_of(attention.query_projection.kernel))
        two = graph.whole(2)
        hidden = graph.add("Tanh", graph.add("Add", graph.add("Unsqueeze", query, two), keys))
        energy = graph.constant(values_of(attention.energy_kernel))
        last = graph.whole(3)
        energies = graph.add("Squeeze", graph.add("MatMul", hidden, energy), last)
        weights = graph.add("Softmax", graph.add("Add", energies, mask), axis=-1)
        of_cell, of_readout = graph.split(graph.add("MatMul", weights, terms), p, t)
        return of_cell, of_readout, weights

    order = decoder.step_order
    if order == "conditional":
        middle = _gru_step(graph, cell, projected, state)
        of_cell, of_readout, weights = attend(middle)
        seen = new = _gru_step(graph, decoder.context_cell, of_cell, middle)
    elif order == "original":
        term = graph.input("term", FLOAT, "B", "K", p)
        updated = _gru_step(graph, cell, graph.add("Add", projected, term), state)
        is_first = graph.add("Equal", ids, graph.constant(np.array(0, np.int64)))
        last = graph.whole(2)
        seen = new = graph.add("Where", graph.add("Unsqueeze", is_first, last), state, updated)
        of_cell, of_readout, weights = attend(new)
        graph.output("term_after", of_cell, FLOAT, "B", "K", p)
    else:
        of_cell, of_readout, weights = attend(state)
        new = _gru_step(graph, cell, graph.add("Add", projected, of_cell), state)
        seen = state if order == "appendix" else new
    match = None if model.copying is None else _match(graph, ids, weights)
    _read_out(graph, model, seen, [of_previous, of_readout], match)
    graph.output("state_after", new, FLOAT, "B", "K", n)
    graph.output("weights", weights, FLOAT, "B", "K", "T")
    graph.write(path, model.target_vocabulary_size)


def _read_out(graph: _Graph, model: Any, state: str, terms: list[str], match: Match | None) -> None:
    """The features, from the state and other terms; and the odds of words that are copied."""
    readout, layer = model.readout, model.copying
    if match is not None and layer.hint_units:
        kernel = graph.constant(halves(values_of(layer.hint_kernel)))
        terms.append(graph.add("MatMul", match[0], kernel))
    hidden = graph.product(state, halves(values_of(readout.state_kernel)))
    for term in terms:
        hidden = graph.add("Add", hidden, term)
    features = graph.add("Max", *graph.split(hidden, readout.hidden_size, readout.hidden_size))
    if readout.factor_kernel is not None:
        features = graph.product(features, values_of(readout.factor_kernel), largest=None)
    if match is not None:
        _add_log_odds(graph, layer, features, match)
    width = readout.factor_units or readout.hidden_size
    graph.output("features", features, FLOAT, "B", "K", width)


def _gru_step(graph: _Graph, cell: Any, projected: str, state: str) -> Value:
    """s + z (s~ - s), see `bahdanau_tf.layers.gru.gru_step`."""
    n = cell.units
    kernel = values_of(cell.recurrent_kernel)
    for_gates, for_candidate = graph.split(projected, 2 * n, n)
    gates = graph.add("Add", for_gates, graph.product(state, kernel[:, : 2 * n]))
    update, reset = graph.split(graph.add("Sigmoid", gates), n, n)
    visible = graph.product(graph.add("Mul", reset, state), kernel[:, 2 * n :])
    candidate = graph.add("Tanh", graph.add("Add", for_candidate, visible))
    change = graph.add("Mul", update, graph.add("Sub", candidate, state))
    return graph.add("Add", state, change)


def write_words(model: Any, path: Path, int8: bool, first: int | None = None) -> None:
    """The last product, over all words or over the first F and each sentence's own."""
    graph = _Graph(int8)
    output = model.output_weights()
    kernel, bias = values_of(output.kernel, output.bias)
    features = graph.input("features", FLOAT, "B", "K", kernel.shape[1])
    count = graph.input("count", INT64, 1)
    logits = graph.product(features, kernel[:first].T, bias[:first], largest=None)
    if first is not None:
        own = graph.input("own", INT64, "B", "M")  # words from F on; 0 for none
        rows = graph.rows(graph.table(kernel), own)
        columns = graph.add("Transpose", rows, perm=[0, 2, 1])
        is_word = graph.add("Greater", own, graph.constant(np.array(0, np.int64)))
        biases = graph.add("Gather", graph.constant(bias), own)
        never = graph.constant(np.float32(-np.inf))
        biases = graph.add("Where", is_word, biases, never)
        biases = graph.add("Unsqueeze", biases, graph.whole(1))
        own_logits = graph.add("Add", graph.add("MatMul", features, columns), biases)
        logits = graph.add("Concat", logits, own_logits, axis=-1)
    if model.copying is not None:
        logits, normalizer = _mixed(graph, logits)
    most = graph.add("Min", count, graph.add("Shape", logits, start=2))
    best, words = graph.add("TopK", logits, most, outputs=2, axis=-1)
    if model.copying is None:
        # The largest logit minus its log-probability, by a softmax, which is one fast pass.
        start, end, axis = (graph.whole(number) for number in (0, 1, 2))
        top = graph.add("Slice", best, start, end, axis)
        place = graph.add("Slice", words, start, end, axis)
        share = graph.add("GatherElements", graph.add("Softmax", logits, axis=-1), place, axis=-1)
        normalizer = graph.add("Sub", top, graph.add("Log", share))
    graph.output("log_probs", graph.add("Sub", best, normalizer), FLOAT, "B", "K", "N")
    graph.output("words", words, INT64, "B", "K", "N")
    graph.output("logits", logits, FLOAT, "B", "K", "V")
    graph.output("normalizer", normalizer, FLOAT, "B", "K", 1)
    graph.write(path, model.target_vocabulary_size)


def _mixed(graph: _Graph, logits: str) -> tuple[str, str]:
    """The logits with those of copied words, see `mixed_logits`, and their normalizer."""
    largest: dict[str, Any] = {"axes": [-1], "keepdims": 1}
    share = graph.add("ReduceMax", graph.add("Softmax", logits, axis=-1), **largest)
    top = graph.add("ReduceMax", logits, **largest)
    normalizer = graph.add("Sub", top, graph.add("Log", share))
    places = graph.input("places", INT64, "B", "T")
    log_odds = graph.input("log_odds", FLOAT, "B", "K", "T")
    places = graph.add("Unsqueeze", places, graph.whole(1))
    is_word = graph.add("Greater", places, graph.whole(0))
    log_odds = graph.add("Where", is_word, log_odds, graph.constant(np.float32(copying.NEVER)))
    places = graph.add("Expand", places, graph.add("Shape", log_odds))
    own = graph.add("GatherElements", logits, places, axis=-1)
    more = graph.add("Sub", graph.add("Add", log_odds, normalizer), own)
    more = graph.add("Softplus", more)
    logits = graph.add("ScatterElements", logits, places, more, axis=-1, reduction="add")
    together = graph.add("ReduceLogSumExp", log_odds, **largest)
    return logits, graph.add("Add", normalizer, graph.add("Softplus", together))
