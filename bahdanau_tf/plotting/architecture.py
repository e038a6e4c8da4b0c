"""A model made of parts, drawn as the paper's Figure 1.

architecture.svg has what any model may have. An element with `data-if` stays in the drawing of a
model for which all words of this attribute hold, see `_facts`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from bahdanau_tf.plotting.steps import Drawn
from bahdanau_tf.system.language import in_language, said
from bahdanau_tf.system.ranges import OptionError

if TYPE_CHECKING:
    import keras


def view_architecture(model: keras.Model, language: str | None = None) -> Drawn:
    """Draws a model made of parts, in the letters of the paper's Figure 1.

    An arrow leads to what reads its start: x_j, h_j, c_i with its weights α_ij, and a step from
    s_{i-1} to s_i in the model's order. The dashed one starts at the state that attention compares
    with the annotations.

    Args:
        model: Such as `RNNSearch(1000, 1000, units=64, step_order="main-text")`.
        language: "en", "ko" or "ja"; None for that of `bahdanau_tf.set_language`.

    Returns:
        SVG that a notebook draws; as a string it is that of a file.

    Raises:
        ValueError: The model is not made of parts, or there are no texts in this language.
    """
    if not hasattr(model, "readout"):
        wanted = "a model made of parts, such as RNNSearch"
        raise OptionError("view_architecture", "model", model, wanted)
    template = files("bahdanau_tf.plotting").joinpath("architecture.svg").read_text("utf-8")
    # Without a namespace, which ElementTree would write as a prefix of each name.
    root = ElementTree.fromstring(template.replace(" xmlns=", " data-xmlns=", 1))
    root.set("xmlns", root.attrib.pop("data-xmlns"))
    facts, sizes = _facts(model), _sizes(model)
    for parent in [*root.iter()]:
        for child in [*parent]:
            if not {*child.attrib.pop("data-if", "").split()} <= facts:
                parent.remove(child)
    with in_language("view_architecture", language):
        for text in root[-1]:
            text.text = said(text.text or "").format_map(sizes)
    return Drawn(ElementTree.tostring(root, "unicode"))


def _facts(model: keras.Model) -> set[str]:
    """The words of `data-if` that hold for a model."""
    order, attention = model.decoder.step_order, model.decoder.attention
    bridge = type(model.bridge).__name__
    facts = {order, bridge, *getattr(model.readout, "terms", ("state", "previous", "context"))}
    facts.add("both" if len(getattr(model.encoder, "directions", ())) > 1 else "one")
    if attention is not None:
        facts.add("weights" if attention.has_alignment else "fixed")
    if order != "conditional":
        facts.add("plain")
    if bridge not in ("BackwardBridge", "ZeroBridge"):
        facts.add("last")
    return facts


def _sizes(model: keras.Model) -> dict[str, object]:
    """The classes of the parts with their sizes, and the sizes of words."""
    sizes: dict[str, object] = {
        "K_x": model.source_vocabulary_size,
        "K_y": model.target_vocabulary_size,
        "m": model.target_embedding.embedding_dim,
    }
    for name, part, letter in (
        *[("encoder", model.encoder, "n"), ("cell", model.decoder.cell, "n")],
        *[("attention", model.decoder.attention, "n'"), ("readout", model.readout, "l")],
    ):
        size = getattr(part, "units", None)
        sizes[name] = type(part).__name__ + (f", {letter} = {size}" if size else "")
    return sizes
