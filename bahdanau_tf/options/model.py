"""The model to train, and the tokenizers of its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bahdanau_tf.options.fields import OptionGroup, setting
from bahdanau_tf.system.ranges import OptionError, Range, named

# ISO 639-1. The codes are ja and zh, not jp and cn.
_TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv "
    "sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)

_IDS = Range(4, 10_000_000)  # at least three special symbols and a word
SUBWORDS = ("bpe", "unigram")
_JOINT = {"tokenizer": SUBWORDS, "target_tokenizer": ["same"]}
# Rates that a model may change after training, as each is that of a layer of its own.
DROPOUT = ("embedding_dropout", "annotation_dropout", "readout_dropout")


@dataclass(frozen=True)
class TextOptions(OptionGroup):
    """How text becomes ids.

    Attributes:
        tokenizer: "word", or the sub-words "bpe" or "unigram"; for short strings "char", or "space"
            for what stands between spaces, such as phones.
        target_tokenizer: That of the target, if it is not the "same" one.
        joint: Whether sub-words are learned from both languages together.
        source_vocabulary_size: Number of ids on the source side, special symbols included; fewer if
            the text has fewer words.
        target_vocabulary_size: Number of ids on the target side; not used with --joint.
        source_language: Code of the source language, such as en, whose rules split text into words
            (not for sub-words); guessed from the training text by default.
        target_language: Code of the target language, such as fr; also guessed by default.
        lowercase: Whether to convert text to lower case.
        reverse_source: Whether the source is read from its last word to its first, as by Sutskever
            et al.
        decompose_source: Whether the source is read in decomposed characters (NFD): Hangul as its
            letters, é as e and an accent (not for words).
        true_case: Whether a source line in all capitals is read as an ordinary sentence; other
            lines stay as they are. Also whether a source of one case is read in any case, with
            sub-words or characters of its own. By default yes, except for Turkish and Azeri, where
            I is the capital of ı.

    Raises:
        ValueError: A value is out of range, or not a language code.
    """

    tokenizer: Literal["word", "bpe", "unigram", "char", "space"] = "word"
    joint: bool = setting(False, used_if=_JOINT)
    source_vocabulary_size: int = setting(30_001, _IDS)
    target_vocabulary_size: int = setting(30_001, _IDS, used_if={"joint": [False]})
    source_language: str | None = None
    target_language: str | None = None
    lowercase: bool = False
    reverse_source: bool = False
    decompose_source: bool = setting(
        False, used_if={"tokenizer": [*SUBWORDS, "char", "space"], "joint": [False]}, kw_only=True
    )
    true_case: bool | None = None
    target_tokenizer: Literal["same", "word", "bpe", "unigram", "char", "space"] = setting(
        "same", kw_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source_language", "target_language"):
            code = getattr(self, name)
            is_listed = code is None or code in _TWO_LETTERS.split()
            if not (is_listed or re.fullmatch("[a-z]{3}", code)):  # the form of ISO 639-3
                wanted = "a code of ISO 639, such as en or ja, without a country"
                raise OptionError("TextOptions", name, code, wanted)

    def unused(self) -> dict[str, str]:
        """Options that this tokenizer does not use, and the flag that is the reason."""
        unused = super().unused()
        for side, name in (("source", "tokenizer"), ("target", "target_tokenizer")):
            kind = self.tokenizer_of(side)
            where = named("tokenizer" if self.target_tokenizer == "same" else name, kind)
            if kind != "word":
                unused[f"{side}_language"] = where
            if kind not in SUBWORDS:
                unused |= dict.fromkeys(("sample_subwords", "sampled_epochs"), where)
            if kind == "word":
                unused["synthetic_pairs"] = where
        return unused

    def tokenizer_of(self, side: str) -> str:
        """The tokenizer of the side "source" or "target"."""
        is_source = side == "source" or self.target_tokenizer == "same"
        return self.tokenizer if is_source else self.target_tokenizer

    def true_cases(self, language: str | None) -> bool:
        """`true_case`, or its default for a source language, a code or None."""
        return language not in ("az", "tr") if self.true_case is None else self.true_case

    def size_of(self, side: str) -> int:
        """Number of ids of the side "source" or "target"."""
        is_source = side == "source" or self.joint
        return self.source_vocabulary_size if is_source else self.target_vocabulary_size


_SIZE = Range(1, 100_000)
_SHARE = Range(0, 1, below_high=True)

# The models that have an option.
_SEARCH = {"model": ["rnnsearch"]}
_RNN = {"model": ["rnnsearch", "rnnencdec"]}
_LSTM = {"model": ["seq2seq-lstm"]}


@dataclass(frozen=True)
class ModelOptions(OptionGroup):
    """The model to train.

    Attributes:
        model: "rnnsearch", "rnnencdec" or "seq2seq-lstm".
        units: n, number of hidden units.
        embedding_dim: m, width of the embeddings.
        attention_units: n', size of the alignment model (rnnsearch, with a score that has a size).
        maxout_units: l, width of the readout (not for seq2seq-lstm).
        layers: Number of LSTM layers on each side (seq2seq-lstm).
        attention: Class of the score, instead of BahdanauAttention, such as GeneralAttention, or
            your own as module.Class (rnnsearch).
        cell: Class of the cells, instead of GRUCell, such as LSTMCell or keras.layers.GRUCell, or
            your own as module.Class (not for seq2seq-lstm).
        step_order: "original", "appendix" or "main-text", or "conditional" for a decoder with two
            updates in each step (not for seq2seq-lstm).
        factored_output: Whether the output matrix is factored, as in the original code (not for
            seq2seq-lstm).
        tie_embeddings: Whether the target embeddings also serve as the output matrix (not for
            seq2seq-lstm).
        embedding_dropout: Dropout rate of the embeddings.
        annotation_dropout: Dropout rate of the annotations (not for seq2seq-lstm).
        state_dropout: Dropout rate of the recurrent states.
        readout_dropout: Dropout rate of the readout.
        initialization: "paper", or "glorot" for larger initial kernels, which learn faster (not for
            seq2seq-lstm); applies to an `attention` or `cell` that takes kernel_initializer.
        share_embeddings: Whether both sides share their embeddings; needs --joint (not for
            seq2seq-lstm).
        copying: "off", or "hint" for words of the source as next words, which carries over names
            and numbers (rnnsearch).
        embedding_bias: Whether embeddings have a bias, as in the original code but not in the paper
            (not for seq2seq-lstm).

    Raises:
        ValueError: A value is out of range, or options contradict each other.
    """

    model: Literal["rnnsearch", "rnnencdec", "seq2seq-lstm"] = "rnnsearch"
    units: int = setting(1000, _SIZE)
    embedding_dim: int = setting(620, _SIZE)
    attention_units: int = setting(1000, _SIZE, used_if=_SEARCH)
    maxout_units: int = setting(500, _SIZE, used_if=_RNN)
    layers: int = setting(4, Range(1, 100), used_if=_LSTM)
    attention: str | None = setting(used_if=_SEARCH, kw_only=True)
    cell: str | None = setting(used_if=_RNN, kw_only=True)
    step_order: Literal["original", "appendix", "main-text", "conditional"] = setting(
        "original", used_if=_RNN
    )
    factored_output: bool = setting(True, used_if=_RNN)
    tie_embeddings: bool = setting(False, used_if=_RNN)
    embedding_dropout: float = setting(0.0, _SHARE)
    annotation_dropout: float = setting(0.0, _SHARE, used_if=_RNN)
    state_dropout: float = setting(0.0, _SHARE)
    readout_dropout: float = setting(0.0, _SHARE)
    initialization: Literal["paper", "glorot"] = setting("paper", used_if=_RNN)
    share_embeddings: bool = setting(False, used_if=_RNN)
    copying: Literal["off", "hint"] = setting("off", used_if=_SEARCH)
    embedding_bias: bool = setting(True, used_if=_RNN)

    def __post_init__(self) -> None:
        super().__post_init__()
        narrow = self.maxout_units != self.embedding_dim
        if self.tie_embeddings and narrow and not self.factored_output:
            wanted = "the same for tie_embeddings without factored_output"
            why = f"and embedding_dim is {self.embedding_dim}"
            raise OptionError("ModelOptions", "maxout_units", self.maxout_units, wanted, why)

    @property
    def named_parts(self) -> dict[str, str]:
        """The names of classes for parts of the model, by field."""
        parts = {part: getattr(self, part) for part in ("attention", "cell")}
        unused = self.unused()
        return {n: v for n, v in parts.items() if v is not None and n not in unused}
