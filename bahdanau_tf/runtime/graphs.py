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

from bahdanau_tf.runtime.search import CHUNK
from bahdanau_tf.system import files
from bahdanau_tf.system.ranges import MARK
from bahdanau_tf.translation.arrays import context_terms, copying, halves, values_of, word_terms
from bahdanau_tf.translation.saved import rounded

OPSET, IR_VERSION = 17, 8  # of ONNX 1.12, 2022
FLOAT, INT64 = 1, 7  # ONNX codes of dtypes
MICROSOFT = "com.microsoft"  # the domain of MatMulIntegerToFloat
SMALLEST = 1e-9  # in place of 0 if all features of a row are 0
ZERO = np.uint8(128)  # the byte of 0
LARGEST = 60.0  # of log odds, whose exponential is computed
FEW = 512  # words, such as characters: what is computed for all of them takes less time
Array: TypeAlias = Any  # of NumPy
Value: TypeAlias = Any  # the name of a value in a graph, or a list of names


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
        self.quantized: dict[tuple[str, Array], str] = {}  # values in bytes, by their step
        self.carried: list[Any] = []  # inputs that each step computes for the next
        self.after: list[Any] = []  # what it computes

    def input(self, name: str, dtype: int, *shape: int | str) -> str:
        """Declares an input; a size that varies is a name."""
        self.inputs.append(self.helper.make_tensor_value_info(name, dtype, shape))
        return name

    def carry(self, name: str, dtype: int, *shape: int | str) -> str:
        """Declares an input that each step computes for the next, see `carry_on`."""
        self.input(name, dtype, *shape)
        self.carried.append(self.helper.make_tensor_value_info(f"{name}_now", dtype, shape))
        return f"{name}_now"

    def carry_on(self, name: str, value: str, dtype: int, *shape: int | str) -> None:
        """Says what the next step reads; `carry` is called in the same order."""
        self.output(f"{name}_after", value, dtype, *shape)
        self.after.append(self.outputs.pop())

    def state(self, name: str, dtype: int, *shape: int | str) -> Value:
        """Declares a state of all hypotheses; gives that of the parents."""
        return self.add("Gather", self.carry(name, dtype, "S", *shape), "origins_now", axis=0)

    def next_state(self, name: str, value: str, dtype: int, *shape: int | str) -> None:
        """Says what a state is after the step, [B, K, ...]."""
        self.carry_on(name, self.add("Flatten", value, axis=2), dtype, "R", *shape)

    def output(self, name: str, value: str, dtype: int, *shape: int | str) -> None:
        makers = [node for node in self.nodes if value in node.output]
        if makers and value not in self.names:  # else it is an input, or another output
            self.names[value] = name
        else:
            self.add("Identity", value, outputs=[name])
        self.outputs.append(self.helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, array: Array) -> str:
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
        if self.int8 and largest is not None:
            step = np.float32(max(largest, SMALLEST) / 127)
            if (x, step) not in self.quantized:
                inputs = x, self.constant(step), self.constant(ZERO)
                self.quantized[x, step] = self.add("QuantizeLinear", *inputs)
            return self._of_bytes(self.quantized[x, step], step, kernel, bias)
        if self.int8:
            size = self.add("ReduceMax", self.add("Abs", x), axes=[-1], keepdims=1)
            size = self.add("Max", size, self.constant(np.float32(SMALLEST)))
            result = self.add("Mul", self.product(self.add("Div", x, size), kernel), size)
        else:
            result = self.add("MatMul", x, self.constant(kernel))
        return result if bias is None else self.add("Add", result, self.constant(bias))

    def _of_bytes(self, x: str, step: Array, kernel: Array, bias: Array | None) -> Value:
        """x W + b, where x is (bytes - 128) times the step."""
        bytes_, scale = rounded(kernel, axis=0)
        inputs = (x, self.constant(bytes_), self.constant(step), self.constant(scale.ravel()))
        more = [] if bias is None else ["", self.constant(bias)]
        return self.add(
            "MatMulIntegerToFloat", *inputs, self.constant(ZERO), *more, domain=MICROSOFT
        )

    def product_of_rows(self, table: Array, ids: str, kernel: Array, bias: Array) -> Value:
        """x W + b for rows x of a matrix; with `int8` they are stored as they are multiplied.

        Those of few rows are stored instead.
        """
        if len(table) <= FEW:
            return self.add("Gather", self.constant(table @ kernel + bias), ids)
        if not self.int8:
            return self.product(self.add("Gather", self.constant(table), ids), kernel, bias)
        step = np.float32(max(np.abs(table).max(), SMALLEST) / 127)
        stored = (np.round(table / step) + ZERO).astype(np.uint8)
        return self._of_bytes(self.add("Gather", self.constant(stored), ids), step, kernel, bias)

    def table(self, table: Array) -> tuple[str, str]:
        """A matrix whose rows `rows` looks up: its name, and that of the scales if any."""
        if not self.int8:
            return self.constant(table), ""
        bytes_, scale = rounded(table, axis=1)
        return self.constant(bytes_), self.constant(scale)

    def rows(self, table: tuple[str, str], ids: str) -> Value:
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
        if self.carried:
            self._repeat()
        graph = self.helper.make_graph(
            self.nodes, path.stem, self.inputs, self.outputs, self.weights
        )
        opsets = [self.helper.make_opsetid("", OPSET), self.helper.make_opsetid(MICROSOFT, 1)]
        model = self.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        self.helper.set_model_props(model, {"vocabulary_size": str(vocabulary_size)})
        onnx.checker.check_model(model)
        files.write_atomically(path, model.SerializeToString())

    def _repeat(self) -> None:
        """Makes a loop of the nodes; the outputs of all steps are stacked.

        It ends after `steps` steps, or the first of which "goes_on" is False.
        """
        info, true = self.helper.make_tensor_value_info, 9
        body = self.helper.make_graph(
            self.nodes,
            "step",
            [info("step", INT64, []), info("goes_on_now", true, []), *self.carried],
            [info("goes_on", true, []), *self.after, *self.outputs],
        )
        initial = [x.name.removesuffix("_now") for x in self.carried]
        names = [f"last_{name}" for name in initial] + [f"all_{x.name}" for x in self.outputs]
        inputs = [self.input("steps", INT64), "", *initial]
        self.nodes = [self.helper.make_node("Loop", inputs, names, "loop", body=body)]
        stacked = [("last", x) for x in self.after] + [("all", x) for x in self.outputs]
        self.outputs = []
        for name, (kind, x) in zip(names, stacked, strict=True):
            value = x.type.tensor_type
            shape = [size.dim_param or size.dim_value for size in value.shape.dim]
            shape = shape if kind == "last" else ["steps", *shape]
            self.outputs.append(info(name, value.elem_type, shape))


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
    """What `Copying.memory` returns, and the first state.

    α @ reach has α_i of each word where it occurs first, and then α_ij + 0.05 where x_{j+1}
    continues a word, since α sums to 1. The biases of the gates are factors of reach and after.
    """
    zero, one = (graph.constant(np.float32(number)) for number in (0, 1))
    none, next_axis, last = graph.whole(0), graph.whole(1), graph.whole(2)
    codes = graph.add("Gather", graph.constant(layer.copies.numpy().astype(np.int64)), source)
    is_word = graph.add("Not", graph.add("Equal", codes, none))
    words, continues = _copied_words(graph, codes)
    across = graph.add("Unsqueeze", words, next_axis)
    same = graph.add("Equal", graph.add("Unsqueeze", words, last), across)
    same = graph.add("And", same, graph.add("Unsqueeze", is_word, next_axis))
    same = graph.add("Cast", same, to=FLOAT)
    count = graph.add("CumSum", same, graph.constant(np.array(2, np.int64)))
    first = graph.add("Where", graph.add("Equal", count, one), same, zero)
    is_first = graph.add("Greater", graph.add("ReduceMax", first, axes=[1], keepdims=0), zero)
    graph.output("places", graph.add("Where", is_first, words, none), INT64, "B", "T")

    def moved(value: str, pads: tuple[int, ...], fill: Array) -> Value:
        return graph.add("Pad", value, graph.whole(*pads), graph.constant(fill))

    continues = moved(graph.add("Cast", continues, to=FLOAT), (0, -1, 0, 1), np.float32(0))
    square = graph.add("Concat", *(graph.add("Shape", source, start=1),) * 2, axis=0)
    beside = graph.add("EyeLike", graph.add("ConstantOfShape", square))
    beside = graph.add("Add", beside, graph.constant(np.float32(copying.NEAR)))
    beside = graph.add("Mul", beside, graph.add("Unsqueeze", continues, next_axis))
    shares = [graph.constant(x) for x in np.exp(values_of(layer.bias))]
    reach = graph.add("Concat", graph.add("Mul", first, shares[0]), beside, axis=2)
    graph.output("reach", reach, FLOAT, "B", "T", "2T")
    after = graph.add("Mul", moved(first, (0, -1, 0, 0, 1, 0), np.float32(0)), shares[1])
    graph.output("after", after, FLOAT, "B", "T", "T")
    fates = [graph.add("Unsqueeze", continues, graph.whole(1, 3))]
    fates.append(graph.add("Sub", one, fates[0]))
    graph.output("fates", graph.add("Concat", *fates, axis=3), FLOAT, "B", 1, "T", 2)
    spelled = graph.add("Where", is_word, words, graph.whole(-1))
    graph.output("spelled", graph.add("Unsqueeze", spelled, next_axis), INT64, "B", 1, "T")
    graph.output("beside", graph.add("Mul", continues, zero), FLOAT, "B", "T")
    graph.output("runs", graph.add("Mul", continues, zero), FLOAT, "B", "T")


def _copied_words(graph: _Graph, codes: Value) -> tuple[Value, Value]:
    """The words of the codes of a source, and whether they continue a word, as `Copying` has it."""
    axis, closing = graph.constant(np.array(1, np.int64)), graph.whole(MARK)
    is_inner = graph.add("Less", codes, graph.whole(0))
    is_mark = graph.add("Less", codes, graph.whole(-MARK))
    is_letters = graph.add("And", is_inner, graph.add("Not", is_mark))
    number, letters = (
        graph.add("CumSum", graph.add("Cast", x, to=INT64), axis)
        for x in (graph.add("Not", is_inner), is_letters)
    )
    across = [graph.add("Unsqueeze", x, graph.whole(1)) for x in (number, letters)]
    same = graph.add("Equal", graph.add("Unsqueeze", number, graph.whole(2)), across[0])
    all_letters = graph.add("Where", same, across[1], graph.whole(0))
    all_letters = graph.add("ReduceMax", all_letters, axes=[2], keepdims=0)
    is_last = graph.add("And", is_mark, graph.add("Equal", letters, all_letters))
    words = graph.add("Mod", graph.add("Abs", codes), closing)
    return words, graph.add("And", is_inner, graph.add("Not", is_last))


def _match(graph: _Graph, ids: str) -> tuple[str, str, str]:
    """m_i; for each place of the source the weight 6^k - 1 of the match there; the state k."""
    runs = graph.state("runs", FLOAT, "T")
    spelled = graph.input("spelled", INT64, "B", 1, "T")
    fates = graph.input("fates", FLOAT, "B", 1, "T", 2)
    one, most, base = (graph.constant(np.float32(x)) for x in (1, copying.LONGEST, copying.BASE))
    same = graph.add("Equal", spelled, graph.add("Unsqueeze", ids, graph.whole(2)))
    moved = graph.add("Pad", runs, graph.whole(0, 0, 1, 0, 0, -1))
    moved = graph.add("Min", graph.add("Add", moved, one), most)
    runs = graph.add("Where", same, moved, graph.constant(np.float32(0)))
    lengths = np.arange(1, copying.MARKED + 1, dtype=np.float32)[:, None]
    marks = graph.add("Unsqueeze", runs, graph.whole(2))
    marks = graph.add("GreaterOrEqual", marks, graph.constant(lengths))
    marks = graph.add("MatMul", graph.add("Cast", marks, to=FLOAT), fates)
    marks = graph.add("Reshape", graph.add("Min", marks, one), graph.whole(0, 0, copying.MARKS))
    near = graph.add("Sub", graph.add("Pow", base, runs), one)
    return marks, near, runs


def _odds(
    graph: _Graph, layer: Any, features: str, match: tuple[str, ...], weights: str
) -> tuple[str, str]:
    """Σ_j [x_j = y] o_ij of each word y of the source where it occurs first; and the state."""
    marks, near = match[:2]
    beside = graph.state("beside", FLOAT, "T")
    reach = graph.input("reach", FLOAT, "B", "T", "2T")
    after = graph.input("after", FLOAT, "B", "T", "T")
    pointer, next_beside = graph.add(
        "Split", graph.add("MatMul", weights, reach), outputs=2, axis=2
    )
    follower = graph.add("LpNormalization", graph.add("Mul", near, beside), p=1)
    follower = graph.add("MatMul", follower, after)
    kernel = graph.constant(np.concatenate(values_of(layer.kernel, layer.mark_kernel)))
    gates = graph.add("MatMul", graph.add("Concat", features, marks, axis=2), kernel)
    gates = graph.add("Exp", graph.add("Min", gates, graph.constant(np.float32(LARGEST))))
    parts = zip(graph.split(gates, 1, 1), (pointer, follower), strict=True)
    return graph.add("Add", *(graph.add("Mul", *part) for part in parts)), next_beside


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


def write_step(model: Any, path: Path, int8: bool, first: int | None = None) -> None:
    """Writes the graph of a step of the beam: from its last words to its best continuations.

    These are over all words, or over the first F and each sentence's own.
    """
    graph = _Graph(int8)
    decoder, readout = model.decoder, model.readout
    n, p = decoder.cell.units, decoder.cell.projection_size
    t = 2 * readout.hidden_size
    ids, _, so_far = (
        graph.carry(name, dtype, "B", "K")
        for name, dtype in (("ids", INT64), ("origins", INT64), ("so_far", FLOAT))
    )
    done = graph.carry("done", FLOAT, "B", "N")
    state = graph.state("state", FLOAT, n)
    table = _embeddings(model.target_embedding)
    table[0] = 0.0  # in place of E y_0, see `BackwardBridge`
    cell = decoder.cell
    of_word = graph.product_of_rows(table, ids, *word_terms(model))
    projected, of_previous = graph.split(of_word, p, t)
    order = decoder.step_order
    if order == "conditional":
        middle = _gru_step(graph, cell, projected, state)
        of_cell, of_readout, weights = _attend(graph, decoder, middle, t)
        seen = new = _gru_step(graph, decoder.context_cell, of_cell, middle)
    elif order == "original":
        term = graph.state("term", FLOAT, p)
        updated = _gru_step(graph, cell, graph.add("Add", projected, term), state)
        is_first = graph.add("Equal", ids, graph.constant(np.array(0, np.int64)))
        last = graph.whole(2)
        seen = new = graph.add("Where", graph.add("Unsqueeze", is_first, last), state, updated)
        of_cell, of_readout, weights = _attend(graph, decoder, new, t)
    else:
        of_cell, of_readout, weights = _attend(graph, decoder, state, t)
        new = _gru_step(graph, cell, graph.add("Add", projected, of_cell), state)
        seen = state if order == "appendix" else new
    match = odds = None
    if model.copying is not None:
        match = _match(graph, ids)
    features = _read_out(graph, model, seen, [of_previous, of_readout], match)
    states = [("state", new, FLOAT, n)]
    if order == "original":
        states.append(("term", of_cell, FLOAT, p))
    if match is not None:
        odds, beside = _odds(graph, model.copying, features, match[:2], weights)
        states += [("runs", match[2], FLOAT, "T"), ("beside", beside, FLOAT, "T")]
    logits, few = _logits(graph, model, features, first)
    _go_on(graph, *_choose(graph, logits, so_far, odds, first is not None, few), done)
    for each in states:
        graph.next_state(*each)
    graph.output("weights", weights, FLOAT, "B", "K", "T")
    graph.write(path, model.target_vocabulary_size)


def _attend(graph: _Graph, decoder: Any, query: str, size: int) -> tuple[str, str, str]:
    """The terms of the cell and of the readout, which has so many, and α."""
    attention, cell_size = decoder.attention, decoder.cell.projection_size
    keys = graph.input("keys", FLOAT, "B", 1, "T", attention.units)
    terms = graph.input("terms", FLOAT, "B", "T", cell_size + size)
    mask = graph.input("mask", FLOAT, "B", 1, "T")
    query = graph.product(query, values_of(attention.query_projection.kernel))
    hidden = graph.add("Add", graph.add("Unsqueeze", query, graph.whole(2)), keys)
    energy = graph.constant(values_of(attention.energy_kernel))
    energies = graph.add("MatMul", graph.add("Tanh", hidden), energy)
    energies = graph.add("Squeeze", energies, graph.whole(3))
    weights = graph.add("Softmax", graph.add("Add", energies, mask), axis=-1)
    of_cell, of_readout = graph.split(graph.add("MatMul", weights, terms), cell_size, size)
    return of_cell, of_readout, weights


def _read_out(
    graph: _Graph, model: Any, state: str, terms: list[str], match: tuple[str, ...] | None
) -> Value:
    """The features, from the state and other terms."""
    readout, layer = model.readout, model.copying
    if match is not None:
        kernel = graph.constant(halves(values_of(layer.hint_kernel)))
        terms.append(graph.add("MatMul", match[0], kernel))
    hidden = graph.product(state, halves(values_of(readout.state_kernel)))
    for term in terms:
        hidden = graph.add("Add", hidden, term)
    features = graph.add("Max", *graph.split(hidden, readout.hidden_size, readout.hidden_size))
    if readout.factor_kernel is not None:
        features = graph.product(features, values_of(readout.factor_kernel), largest=None)
    return features


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


def _logits(graph: _Graph, model: Any, features: str, first: int | None) -> tuple[str, int]:
    """The last product; and its width if it has few columns, else 0."""
    output = model.output_weights()
    kernel, bias = values_of(output.kernel, output.bias)
    if first is None:  # whole chunks
        missing = -len(bias) % CHUNK
        kernel = np.pad(kernel, [[0, missing], [0, 0]])
        bias = np.pad(bias, [0, missing], constant_values=-np.inf)
        if len(bias) <= FEW:
            logits = graph.add("MatMul", features, graph.constant(kernel.T))
            return graph.add("Add", logits, graph.constant(bias)), len(bias)
    logits = graph.product(features, kernel[:first].T, bias[:first], largest=None)
    if first is None:
        return logits, 0
    columns = graph.input("columns", FLOAT, "B", kernel.shape[1], "M")
    biases = graph.input("biases", FLOAT, "B", 1, "M")
    own = graph.add("Add", graph.add("MatMul", features, columns), biases)
    return graph.add("Concat", logits, own, axis=-1), 0


def _choose(
    graph: _Graph, logits: str, so_far: str, odds: str | None, is_short: bool, few: int
) -> tuple[str, str, str]:
    """The words, parents and log-probabilities of the best continuations of each row.

    `few` is the number of logits, or 0 for many. The probabilities of `asked` words are an output.
    """
    count = graph.input("count", INT64, 1)
    barred, asked = (graph.input(x, INT64, "B", "K", x) for x in ("barred", "asked"))
    nothing = graph.input("nothing", FLOAT, "B", "K", "barred")
    shares = graph.add("Softmax", logits, axis=-1)
    if odds is not None:  # p = (softmax + o) / (1 + Σ o)
        places = graph.input("places", INT64, "B", "K", "T")
        shares = graph.add("ScatterElements", shares, places, odds, axis=-1, reduction="add")
        total = graph.add("ReduceSum", odds, graph.whole(-1), keepdims=1)
        total = graph.add("Add", total, graph.constant(np.float32(1)))
    shares = graph.add("ScatterElements", shares, barred, nothing, axis=-1)
    asked = graph.add("GatherElements", shares, asked, axis=-1)
    among, length, flat = shares, graph.whole(few or CHUNK), graph.whole(0, -1)
    if not few:
        # The best words of a hypothesis are in as many chunks, those with the largest maxima.
        chunks = graph.add("Reshape", shares, graph.whole(0, 0, -1, CHUNK))
        maxima = graph.add("ReduceMax", chunks, axes=[-1], keepdims=0)
        each = graph.add("Min", count, graph.add("Shape", maxima, start=2))
        _, best = graph.add("TopK", maxima, each, outputs=2, axis=-1)
        places = graph.add("Unsqueeze", best, graph.whole(3))
        among = graph.add("GatherND", chunks, places, batch_dims=2)
    if odds is not None:
        asked = graph.add("Div", asked, total)
        among = graph.add(
            "Div", among, total if few else graph.add("Unsqueeze", total, graph.whole(3))
        )
    log_probs = graph.add("Unsqueeze", so_far, graph.whole(2) if few else graph.whole(2, 3))
    log_probs = graph.add("Reshape", graph.add("Add", graph.add("Log", among), log_probs), flat)
    log_probs, order = graph.add("TopK", log_probs, count, outputs=2, axis=-1)
    parents, words = (graph.add(kind, order, length) for kind in ("Div", "Mod"))
    if not few:
        chunk = graph.add("GatherElements", graph.add("Reshape", best, flat), parents, axis=-1)
        words = graph.add("Add", graph.add("Mul", chunk, length), words)
        parents = graph.add("Div", parents, each)
    if is_short:  # places in the shortlist
        words = graph.add(
            "GatherElements", graph.input("shortlist", INT64, "B", "V"), words, axis=-1
        )
    graph.output("probabilities", asked, FLOAT, "B", "K", "A")
    return words, parents, log_probs


def _go_on(graph: _Graph, words: str, parents: str, log_probs: str, done: str) -> None:
    """Says with which continuations the next step begins, and whether it does, see `search.Rule`.

    A continuation that ends, or is left, goes on as one that is impossible.
    """
    never, eos = graph.constant(np.float32(-np.inf)), graph.input("eos", INT64, 1)
    is_end = graph.add("Equal", words, eos)
    divisor = graph.add("Gather", graph.input("divisors", FLOAT, "steps"), "step")
    scores = graph.add("Where", is_end, graph.add("Div", log_probs, divisor), never)
    scores = graph.add("Concat", done, scores, axis=1)
    done, _ = graph.add("TopK", scores, graph.add("Shape", done, start=1), outputs=2, axis=1)
    least = graph.add("ReduceMin", done, axes=[1], keepdims=1)
    live = graph.add("Where", is_end, never, log_probs)
    bound = graph.add("Div", live, graph.input("bounds", FLOAT, "B", 1))
    live = graph.add("Where", graph.add("Greater", bound, least), live, never)
    best = graph.add("ReduceMin", graph.add("ReduceMax", live, axes=[1], keepdims=0), keepdims=0)
    graph.add("Greater", best, never, outputs=["goes_on"])
    origins = graph.add("Add", parents, graph.input("starts", INT64, "B", 1))
    graph.carry_on("ids", words, INT64, "B", "C")
    graph.carry_on("origins", origins, INT64, "B", "C")
    graph.carry_on("so_far", live, FLOAT, "B", "C")
    graph.carry_on("done", done, FLOAT, "B", "N")
    graph.output("words", words, INT64, "B", "C")
    graph.output("parents", parents, INT64, "B", "C")
    graph.output("log_probs", log_probs, FLOAT, "B", "C")


def write_own(model: Any, path: Path, int8: bool) -> None:
    """Writes the graph from words to their columns of the last product, and biases."""
    graph = _Graph(int8)
    output = model.output_weights()
    kernel, bias = values_of(output.kernel, output.bias)
    own = graph.input("own", INT64, "B", "M")  # 0 for none
    columns = graph.add("Transpose", graph.rows(graph.table(kernel), own), perm=[0, 2, 1])
    graph.output("columns", columns, FLOAT, "B", kernel.shape[1], "M")
    is_word = graph.add("Greater", own, graph.constant(np.array(0, np.int64)))
    biases = graph.add("Gather", graph.constant(bias), own)
    biases = graph.add("Where", is_word, biases, graph.constant(np.float32(-np.inf)))
    graph.output("biases", graph.add("Unsqueeze", biases, graph.whole(1)), FLOAT, "B", 1, "M")
    graph.write(path, model.target_vocabulary_size)
