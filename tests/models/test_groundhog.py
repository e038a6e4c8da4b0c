"""Imported GroundHog models compared with the output of the original program.

`../shared/groundhog` holds weights and what the authors' program computed with them; tests that
need it skip if it is absent. The others use models with random weights and the pickles in this
file.
"""

import io
import os
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf
from hypothesis import given, strategies as st
from oracle import randomized
from refusals import refused

from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models import groundhog
from bahdanau_tf.models.papers import RNNEncDec, RNNSearch
from bahdanau_tf.optimizers import Adadelta
from bahdanau_tf.translation import Lexicon

MODELS = {"rnnsearch": RNNSearch, "rnnencdec": RNNEncDec}
SENTENCES, END, UNKNOWN = 12, 26, 1


def compiled(function: Callable) -> Callable:
    """The function as a graph for any lengths, since eager loops are slow."""
    return tf.function(function, reduce_retracing=True, autograph=False)


class Original(reference.OriginalFiles):
    """The files of the original program, and the imported model in graphs."""

    @cached_property
    def file(self) -> dict[str, np.ndarray]:
        return self.load("forward")

    @cached_property
    def model(self) -> Any:
        """The imported model, for tests that do not change its weights."""
        return self.imported(self.folder / "params.npz")

    @cached_property
    def encode(self) -> Callable:
        return compiled(self.model.encode)

    def imported(self, parameters: Any) -> Any:
        return MODELS[self.name].from_groundhog(parameters)

    def sentence(self, number: int) -> dict[str, np.ndarray]:
        prefix = f"s{number:02}_"
        return {
            name.removeprefix(prefix): value
            for name, value in self.file.items()
            if name.startswith(prefix)
        }

    @property
    def batch(self) -> dict[str, tf.Tensor]:
        """The batch of the file, batch axis first, padded with 0."""
        return {
            side: tf.constant((self.file[f"batch_{letter}"] * self.mask(letter)).T, tf.int32)
            for side, letter in (("source", "x"), ("target", "y"))
        }

    def mask(self, letter: str) -> np.ndarray:
        return self.file[f"batch_{letter}_mask"].astype(int)


@pytest.fixture(scope="module", params=MODELS)
def original(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> Original:
    return Original(request.param, shared("groundhog") / request.param)


def close(actual: Any, wanted: np.ndarray, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(actual), wanted, rtol=0, atol=atol)


def by_name(model: Any, values: Any = None) -> dict[str, np.ndarray]:
    """GroundHog's names -> a model's weights, or given values instead."""
    if values is None:
        values = [weight.numpy() for weight in model.trainable_variables]
    of_weight = dict(zip(map(id, model.trainable_variables), values, strict=True))
    named: dict[str, np.ndarray] = {}
    for weight, names, is_transposed in groundhog.named_weights(model):
        value = of_weight[id(weight)]
        gates = np.split(value.T if is_transposed else value, len(names), axis=-1)
        named |= dict(zip(names, gates, strict=True))
    return named


# Weights and the outputs of a model.


def test_import_reads_every_tensor_unchanged(original):
    arrays = original.load("params")
    model = original.model
    assert model.source_vocabulary_size == original.file["cfg_n_sym_source"]
    assert model.target_vocabulary_size == original.file["cfg_n_sym_target"]
    assert model.count_params() == sum(a.size for a in arrays.values())
    named = by_name(model)
    assert named.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (named[name] == array).all(), name


def test_annotations_and_decode_steps_equal_the_original(original):
    """Steps with given words yield the state after each word."""
    model = original.model
    decode_step = compiled(model.decode_step)
    for number in range(SENTENCES):
        wanted = original.sentence(number)
        memory, state = original.encode(tf.constant(wanted["x"][None], tf.int32))
        read = memory.attended.source
        if model.has_alignment:
            close(read.annotations[0], wanted["annotations"])
        else:  # the file repeats the last state for every word
            close(np.tile(read, [len(wanted["x"]), 1]), wanted["annotations"])
        state = tf.nest.map_structure(lambda x: x[:, None], state)
        previous = [model.start_id, *wanted["y"]]
        for i, word in enumerate(previous):
            ids = tf.constant([[word]], tf.int32)
            logits, state, weights = decode_step(ids, state, memory)
            state_i = wanted["states"][i - 1] if i else wanted["s0"]
            close(state.states[0][0, 0], state_i)
            if i < len(wanted["y"]):
                close(logits[0, 0], wanted["logits"][i])
                kernel = np.asarray(model.decoder.context_kernel)
                close(state.cell_term[0, 0], wanted["context"][i] @ kernel)
                if model.has_alignment:
                    close(weights[0, 0], wanted["alpha"][i])


def test_a_padded_batch_gives_the_same_as_its_sentences_alone(original):
    model, file, batch = original.model, original.file, original.batch
    every = tf.nn.log_softmax(model(batch))
    logp = tf.gather(every, batch["target"], batch_dims=2).numpy() * original.mask("y").T
    close(logp, file["batch_logp"].T)
    close(logp.sum(1), file["batch_total"], 3e-5)
    for number in range(SENTENCES):
        alone = original.sentence(number)["logp"]
        close(logp[number, : len(alone)], alone)
    real = original.mask("y").T.astype(bool)
    _, glimpse = compiled(model.hidden)(batch)
    contexts = file["batch_context"].swapaxes(0, 1)
    close(np.asarray(glimpse.context)[real], contexts[real])
    close(glimpse.state[:, 0], file["batch_s0"])
    states = file["batch_states"].swapaxes(0, 1)[:, :-1]
    close(np.asarray(glimpse.state)[:, 1:][real[:, 1:]], states[real[:, 1:]])
    if model.has_alignment:
        weights = np.asarray(glimpse.weights)
        close(weights[real], file["batch_alpha"].transpose(2, 0, 1)[real])
        assert (weights * (batch["source"].numpy() == 0)[:, None] == 0).all()
        annotations = original.encode(batch["source"])[0].attended.source
        close(annotations.annotations, file["batch_annotations"].swapaxes(0, 1))


# Gradients and updates.


def cost_and_gradients(model: Any, original: Original) -> Callable:
    """A function without arguments: summed cost of the batch, and gradients."""
    batch = original.batch
    words = tf.constant(original.mask("y").T, tf.float32)

    @compiled
    def compute() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            cost = TokenCrossentropy()(batch["target"], model(batch), words)
        return cost, tape.gradient(cost, model.trainable_variables)

    return compute


def test_gradients_equal_the_original_before_and_after_clipping(original):
    model = original.model
    cost, gradients = cost_and_gradients(model, original)()
    assert float(cost) == pytest.approx(float(original.file["batch_cost"]), rel=1e-6)
    clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
    wanted_norm = original.load("train")["grad_norm_before_update"][0]
    assert float(norm) == pytest.approx(float(wanted_norm), rel=1e-5)
    for file, values in (("grad", gradients), ("grad_clipped", clipped)):
        named = by_name(model, [value.numpy() for value in values])
        wanted = original.load(file)
        assert named.keys() == wanted.keys()
        for name, gradient in wanted.items():
            close(named[name], gradient, 1e-4 * np.abs(gradient).max())


def test_five_adadelta_updates_equal_the_original(original):
    model = original.imported(original.load("params"))
    train = original.load("train")
    rho, epsilon, most = (float(train[name]) for name in ("rho", "eps", "cutoff"))
    optimizer = Adadelta(1.0, rho, epsilon, max_norm=most)
    compute = cost_and_gradients(model, original)
    for update in range(5):
        cost, gradients = compute()
        wanted = train["cost_before_update"][update]
        assert float(cost) == pytest.approx(float(wanted), rel=1e-6)
        optimizer.apply(gradients, model.trainable_variables)
        if update in (0, 4):
            named = by_name(model)
            for name, array in original.load(f"params_after{update + 1}").items():
                close(named[name], array)
    assert float(compute()[0]) == pytest.approx(float(train["cost_after5"]), rel=1e-6)


# Models with random weights.


def random_arrays(name: str) -> dict[str, np.ndarray]:
    """The weights of a small model, all of whose sizes differ, by GroundHog's names."""
    attention = {"attention_units": 3} if name == "rnnsearch" else {}
    model = MODELS[name](11, 9, units=6, embedding_dim=5, maxout_units=4, **attention)
    return by_name(randomized(model, seed=12))


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_file_gives_the_logits_of_the_reference(name, tmp_path):
    """Saved under GroundHog's names and read again."""
    arrays = random_arrays(name)
    np.savez(tmp_path / "search_model.npz", **arrays)
    model = MODELS[name].from_groundhog(tmp_path / "search_model.npz")
    source = np.array([[3, 4, 1, 10], [5, 10, 0, 0]], np.int32)
    target = np.array([[2, 7, 8], [6, 8, 0]], np.int32)
    wanted = getattr(reference, name)(
        reference.from_groundhog(arrays), source, source != 0, target, target != 0
    )
    logits = model({"source": source, "target": target})
    real = target != 0
    close(np.asarray(logits)[real], wanted.logits[real])


@pytest.mark.parametrize("name", MODELS)
def test_bad_parameters_are_refused_with_their_name(name):
    arrays = random_arrays(name)
    model = MODELS[name]
    without = {k: v for k, v in arrays.items() if k != "b_dec_deep_softmax"}
    refused(lambda: model.from_groundhog(without), "file lacks b_dec_deep_softmax")
    width = 6 * (1 + (name == "rnnsearch"))
    of_context = ("W_0_dec_repr_readout", "A_dec_transition_0")
    context = {
        key: np.zeros((7, value.shape[1]))
        for key, value in arrays.items()
        if value.shape[0] == width and ("dec_dec_" in key or key in of_context)
    }
    square, bias = "W_dec_transition_0", "b_dec_deep_softmax"
    for change, words in (
        ({"deeper": np.zeros(2)}, r"file has unknown deeper$"),
        ({square: np.zeros((6, 5))}, r"W_dec_transition_0 has shape \(6,"),
        ({square: np.zeros(36)}, r"shape \(36,\), wanted \(n,n\)"),
        ({"W1_dec_deep_softmax": np.zeros((3, 5))}, "maxout input is 8 wide, wanted 6"),
        (context, "context is 7 wide"),
        ({bias: np.full(9, np.nan)}, "b_dec_deep_softmax is not all"),
        ({bias: np.array(["a"] * 9)}, "b_dec_deep_softmax is not all"),
    ):
        with pytest.raises(ValueError, match=words):
            model.from_groundhog(arrays | change)


def test_each_model_refuses_a_file_of_the_other():
    search, encdec = random_arrays("rnnsearch"), random_arrays("rnnencdec")
    refused(lambda: RNNSearch.from_groundhog(encdec), "RNNSearch", "lacks A_dec_transition")
    refused(lambda: RNNEncDec.from_groundhog(search), "RNNEncDec", "unknown A_dec_transit")


class Bomb:
    """Makes a folder when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def test_parameter_files_are_never_unpickled(tmp_path):
    fuse = tmp_path / "fuse"
    objects = np.array([Bomb(fuse)], dtype=object)
    np.savez(tmp_path / "objects.npz", b_dec_deep_softmax=objects)
    np.save(tmp_path / "one.npz.npy", np.zeros(3))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb(fuse)))
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 and then nothing")
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in os.listdir(tmp_path):
        with pytest.raises(ValueError, match="read_parameters"):
            groundhog.read_parameters(tmp_path / name)
    assert not fuse.exists()
    with pytest.raises(FileNotFoundError):
        groundhog.read_parameters(tmp_path / "absent.npz")


def test_what_an_array_claims_is_checked_before_it_is_read(tmp_path):
    """NumPy would make 4 TB of room first, also for zeros well packed."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**12,)}
    )
    claims, packed = tmp_path / "claims.npz", tmp_path / "packed.npz"
    with zipfile.ZipFile(claims, "w") as archive:
        archive.writestr("c.npy", header.getvalue() + b"\0" * 80)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c.npy", bytes(257 << 20))
    for path, words in (
        (claims, r"c\.npy claims an array of shape \(1000000000000,\), 4,0"),
        (packed, r"bytes would unpack to 269,484,032, wanted at most"),
    ):
        with pytest.raises(ValueError, match=f"read_parameters: .*{words}"):
            groundhog.read_parameters(path)
        with pytest.raises(ValueError, match=f"Lexicon.load: .*{words}"):
            Lexicon.load(path)


def test_pipes_are_not_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for read in (groundhog.read_parameters, groundhog.read_vocabulary):
        refused(lambda read=read: read(path), "pipe is a pipe or a device")


# Vocabularies. The bytes were written by cPickle of Python 2.7.18 from {'<s>': 0, '</s>': 0,
# 'UNK': 1, 'caf\xc3\xa9': 2, "l'homme": 3,
#  '"\\\t': 4, u'\xe9t\xe9': 5, 'big': 70000, 'long': 12345678901L}

PICKLES = {
    0: (
        b"(dp1\nS'caf\\xc3\\xa9'\np2\nI2\nsS'big'\np3\nI70000\nsS'UNK'\np5\n"
        b"I1\nsS'</s>'\np6\nI0\nsS\"l'homme\"\np7\nI3\nsS'\"\\\\\\t'\np8\nI4\n"
        b"sS'<s>'\np9\nI0\nsV\xe9t\xe9\np10\nI5\nsS'long'\np11\n"
        b"L12345678901L\ns."
    ),
    1: (
        b"}q\x01(U\x05caf\xc3\xa9q\x02K\x02U\x03bigq\x03Jp\x11\x01\x00"
        b"U\x03UNKq\x04K\x01U\x04</s>q\x05K\x00U\x07l'hommeq\x06K\x03"
        b'U\x03"\\\tq\x07K\x04U\x03<s>q\x08K\x00X\x05\x00\x00\x00\xc3\xa9t'
        b"\xc3\xa9q\tK\x05U\x04longq\nL12345678901L\nu."
    ),
    2: (
        b"\x80\x02}q\x01(U\x05caf\xc3\xa9q\x02K\x02U\x03bigq\x03Jp\x11\x01"
        b"\x00U\x03UNKq\x04K\x01U\x04</s>q\x05K\x00U\x07l'hommeq\x06K\x03"
        b'U\x03"\\\tq\x07K\x04U\x03<s>q\x08K\x00X\x05\x00\x00\x00\xc3\xa9t'
        b"\xc3\xa9q\tK\x05U\x04longq\n\x8a\x055\x1c\xdc\xdf\x02u."
    ),
}
WORDS = dict(enumerate(["</s>", "UNK", "café", "l'homme", '"\\\t', "été"]))
WORDS |= {70000: "big", 12345678901: "long"}


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], dict[int, str]]:
    def read_bytes(data: bytes) -> dict[int, str]:
        path = tmp_path / "vocab.pkl"
        path.write_bytes(data)
        return groundhog.read_vocabulary(path)

    return read_bytes


@pytest.mark.parametrize("protocol", PICKLES)
def test_vocabularies_of_python_2_are_read(protocol, read):
    assert read(PICKLES[protocol]) == WORDS


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_vocabularies_of_ids_or_of_words_are_read(protocol, read):
    """Thousands of words, written by Python 3 in the old protocols."""
    words = {i: f"word {i}\n\\ \u00e9\u4e2d\U0001f600" for i in range(3000)}
    inverted = {word: index for index, word in words.items()}
    assert read(pickle.dumps(words, protocol)) == words
    assert read(pickle.dumps(inverted, protocol)) == words


def test_unusual_words_are_read(read):
    long = b"w" * 300
    assert read(b"}(T,\x01\x00\x00" + long + b"K\x02u.") == {2: long.decode()}
    # A string that is used twice through the memo; bytes that are not UTF-8.
    assert read(b"}(K\x02U\x02\xc3\xa9q\x00K\x03h\x00u.") == {2: "é", 3: "é"}
    assert read(b"}(U\x02\xffaK\x02u.") == {2: "\ufffda"}
    assert read(b"(dp0\nV\\ud83d\\ude00\np1\nI2\ns.") == {2: "\U0001f600"}
    assert read(b"}.") == {}


def test_only_opcodes_of_strings_numbers_and_dictionaries_are_accepted(read):
    accepted_names = "INT LONG BININT BININT1 BININT2 LONG1 STRING BINSTRING "
    accepted_names += "SHORT_BINSTRING UNICODE BINUNICODE DICT EMPTY_DICT SETITEM "
    accepted_names += "SETITEMS MARK PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET "
    accepted_names += "PROTO STOP"
    for opcode in pickletools.opcodes:
        if opcode.name not in accepted_names.split():
            with pytest.raises(ValueError, match=r"opcode .* makes no string or number"):
                read(opcode.code.encode("latin-1") + b"0\n0\n.")


# fmt: off
BROKEN = [
    b"", b".", b"}", b"}(K\x01u.", b"K\x01.", b"}K\x01K\x02K\x03s.", b"u.", b"d.", b"s.", b"(.",
    b"h\x05.", b"q\x05.", b"}(U\x05abK\x01u.", b"T\xff\xff\xff\xffabc.", b"}(K\x01K\x02u.",
    b"}(U\x01aU\x01bu.", b"}q\x01(K\x01h\x01u.", b"}(}K\x01u.", b"(dS'a\nI1\ns.", b"(dSa\nI1\ns.",
    b"Ione\n.", b"V\\ud83\n.",
]
# fmt: on


@pytest.mark.parametrize("data", BROKEN)
def test_broken_pickles_are_refused(data, read):
    refused(lambda: read(data), "read_vocabulary:", "not a pickled")


def test_nested_dictionaries_give_a_short_message(read):
    """Each dictionary contains the one before twice: 2²⁰ if written out."""
    data = b"}q\x00"
    for level in range(20):
        last = b"h" + bytes([level])
        data += b"}(K\x01" + last + b"K\x02" + last + b"uq"
        data += bytes([level + 1])
    with pytest.raises(ValueError, match="neither a string nor") as error:
        read(data + b".")
    assert len(str(error.value)) < 300


def test_small_malicious_pickles_use_little_memory_and_time(read):
    """What `pickle.Unpickler` could be made to do without importing a name."""
    # A memo index that would need 32 GiB if the memo were an array.
    assert read(b"}r\xff\xff\xff\x7f.") == {}
    # A key of tuples nested 100 times, each twice: hashing takes 2¹⁰⁰ steps.
    refused(lambda: read(b"}" + b")" + b"2\x86" * 100 + b"K\x01s."), "opcode b')' makes no")


@given(st.binary(max_size=40), st.integers(0, 2), st.integers(0, 80))
def test_random_bytes_raise_only_value_errors(tmp_path_factory, noise, protocol, place):
    path = tmp_path_factory.getbasetemp() / "noise.pkl"
    data = PICKLES[protocol]
    for broken in (noise, data[:place] + noise + data[place:]):
        path.write_bytes(broken)
        try:
            words = groundhog.read_vocabulary(path)
        except ValueError:
            continue
        assert all(isinstance(index, int) for index in words)


def test_a_vocabulary_for_a_model_keeps_the_ids():
    """Ids do not change; 0, 1 and the last are the special symbols."""
    text = pytest.importorskip("bahdanau_tf.text.vocabulary")
    words = {0: "<s>", 1: "UNK", 2: "the", 3: "[END]", 5: "a\nb", 6: "the"}
    words |= {7: "is", 8: "late", 9: "later"}
    tokens = groundhog.vocabulary_tokens(words, 9)
    assert tokens[2] == "the"
    assert tokens[7] == "is"
    vocabulary = text.Vocabulary(tokens)
    assert (vocabulary.unk_id, vocabulary.eos_id, len(vocabulary)) == (1, 8, 9)
    ids = vocabulary.ids(tf.constant(["the", "is", "late", "later", "<s>"]))
    assert ids.numpy().tolist() == [2, 7, 1, 1, 1]
