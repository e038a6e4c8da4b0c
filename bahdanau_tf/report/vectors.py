"""Figure 2 of Sutskever et al. 2014: sentences as points in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bahdanau_tf.experiments.results import Results
from bahdanau_tf.plotting import plot_vectors
from bahdanau_tf.report.document import Picture
from bahdanau_tf.report.document import Section
from bahdanau_tf.translation.lengths import in_a_plane
from bahdanau_tf.translation.lengths import nearest
from bahdanau_tf.translation.lengths import sentence_vectors
from bahdanau_tf.translator import Translator

Phrases = Sequence[Sequence[str]]  # groups of sentences of similar meaning
_TITLE = "Sentence vectors, after Figure 2 of Sutskever et al. 2014"
_SHOWN = (
    "What the decoder of {name} gets of a sentence, projected on the two "
    "principal components of the sentences in each picture. The sentences of a "
    "group have one sign. Where groups differ in the order of their words "
    "alone, a bag of words could not tell them apart."
)


def vectors_figure(
    results: Results, phrases: Sequence[Phrases], folder: Path
) -> Section:
    """Draws sentences as the first LSTM keeps them, else an RNNencdec.

    Args:
        results: The systems.
        phrases: The groups of sentences of each picture.
        folder: Gets a PNG for each picture.
    """
    able = [*results.of_kind("LSTM"), *results.of_kind("RNNencdec")]
    named = ((one.name, one.translator) for one in able if one.translator)
    found = next(named, None)
    if not phrases:
        return Section(_TITLE, ["Not run: no sentences were given for it."])
    if found is None:
        said = "Not run: no system keeps a sentence in one vector."
        return Section(_TITLE, [said])
    name, translator = found
    drawn = [
        _drawn(translator, groups, folder / f"vectors{number}.png")
        for number, groups in enumerate(phrases, 1)
    ]
    pictures, data = zip(*drawn, strict=True)
    said = _SHOWN.format(name=name)
    return Section(_TITLE, [said], pictures, data={"vectors": data})


def _drawn(
    translator: Translator, groups: Phrases, path: Path
) -> tuple[Picture, list[dict[str, object]]]:
    """Draws a picture; returns it and its data."""
    texts = [text for group in groups for text in group]
    numbers = [n for n, group in enumerate(groups) for _ in group]
    vectors = sentence_vectors(translator.model, translator.source_text, texts)
    points, share = in_a_plane(vectors)
    plot_vectors(points, texts, numbers, path)
    others = nearest(vectors)
    own = sum(
        numbers[other] == number
        for number, other in zip(numbers, others, strict=True)
    )
    title = (
        f"{100 * share:.0f} % of the variance is in the plane; {own} of "
        f"{len(texts)} sentences have their nearest in the whole space in "
        "their own group"
    )
    data = [
        {"text": text, "group": number, "point": point}
        for text, number, point in zip(
            texts, numbers, points.round(4).tolist(), strict=True
        )
    ]
    return Picture(path, title), data
