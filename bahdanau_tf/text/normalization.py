"""Normalisation rules for SentencePiece: one way to write each text."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

from bahdanau_tf.text.characters import INVISIBLE

FULL_WIDTH = re.compile("[\uff01-\uff5e]")  # ! to ~


def normalization_rules(half_width: bool, lowercase: bool) -> dict[str, str]:
    """Replacements of characters; SentencePiece applies the longest that fits.

    Results are not replaced again. All canonically equal sequences of a
    character become its NFC form, in whatever order its marks come and however
    many are separate; unlike in NFC, not if other marks stand between them.
    Blanks become U+0020, invisible characters are removed.

    Args:
        half_width: Whether the full-width forms of ASCII become ASCII.
        lowercase: Whether capitals become small letters.

    Returns:
        The replaced texts, each with its replacement.
    """
    rules = {}
    # Outside these two ranges no character is assigned (Unicode 17).
    codes = itertools.chain(range(0x33500), range(0xE0000, 0xE0200))
    for character in map(chr, codes):
        if unicodedata.category(character) in ("Cn", "Co", "Cs"):
            continue
        written = unicodedata.normalize("NFC", character)
        if half_width and FULL_WIDTH.match(character):
            written = unicodedata.normalize("NFKC", character)
        if lowercase:
            written = written.lower()
        if character.isspace():
            written = " "
        for form in _equals(character):
            if form != written:
                rules[form] = written
    return rules | dict.fromkeys(INVISIBLE, "")


def _equals(character: str) -> Iterator[str]:
    """A character, and the sequences that are canonically equal to it."""
    yield character
    if unicodedata.is_normalized("NFD", character):
        return
    apart = unicodedata.normalize("NFD", character)
    composed = unicodedata.normalize("NFC", character)
    for order in itertools.permutations(apart[1:]):
        for joined in range(len(order)):
            head = apart[0] + "".join(order[:joined])
            form = unicodedata.normalize("NFC", head)
            form += "".join(order[joined:])
            if unicodedata.normalize("NFC", form) == composed:
                yield form


@functools.cache
def rules_text(half_width: bool, lowercase: bool) -> str:
    """The rules in SentencePiece's format: code points, tab, code points."""
    rules = normalization_rules(half_width, lowercase)
    lines = (
        "\t".join(" ".join(f"{ord(part):X}" for part in side) for side in rule)
        for rule in sorted(rules.items())
    )
    return "\n".join(lines) + "\n"


def without_rules_path(model_proto: bytes) -> bytes:
    """Removes the path of the rules file from a SentencePiece model."""
    model = _model_class().FromString(model_proto)
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    return bytes(model.SerializeToString())


@functools.cache
def _model_class() -> Any:
    """SentencePiece's ModelProto with one field declared; others are kept.

    The class that comes with SentencePiece may need a newer protobuf than
    TensorFlow does.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="bahdanau_tf/model.proto", package="bahdanau_tf"
    )
    spec = file.message_type.add(name="NormalizerSpec")
    spec.field.add(
        name="normalization_rule_tsv",
        number=6,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    model = file.message_type.add(name="ModelProto")
    model.field.add(
        name="normalizer_spec",
        number=3,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".bahdanau_tf.NormalizerSpec",
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("bahdanau_tf.ModelProto")
    return message_factory.GetMessageClass(found)
