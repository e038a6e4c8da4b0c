"""The trained model with which a training begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import keras

from bahdanau_tf.models.scoring import with_added_rows
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.words import with_added_words
from bahdanau_tf.training.settings import read_settings
from bahdanau_tf.translator import Translator
from bahdanau_tf.translator import load_best

FOLDER = "start"  # in a training's folder: the model with which it began


@dataclass(frozen=True)
class Start:
    """The trained model with which a training begins.

    Attributes:
        init_from: The folder of an earlier training, or of a saved translator.
        added_words: Number of words of the new text that are added to each
            side: the most frequent ones that are unknown.
    """

    init_from: str
    added_words: int = 0

    @cached_property
    def translator(self) -> Translator:
        """The translator of the folder.

        Raises:
            ValueError: There is none, or `train` cannot train it.
            OSError: A file cannot be read.
        """
        try:
            found = load_best(self.init_from)
        except ValueError as error:
            said = str(error).removeprefix("Translator.load: ")
            raise ValueError(f"--init_from: {said}") from error
        is_single = isinstance(found.model, keras.Model)
        if not is_single or len(found.source_texts) != 1:
            raise ValueError(
                f"--init_from: {self.init_from} holds an ensemble, wanted a "
                "single model"
            )
        return found

    @property
    def known(self) -> dict[str, object]:
        """Its sizes and tokenizer, as options from which others follow."""
        texts = self.translator.source_text, self.translator.target_text
        is_word = isinstance(texts[0], WordTokenizer)
        model: keras.Model = self.translator.model
        units = model.get_config().get("units")
        return {
            "tokenizer": "word" if is_word else "bpe",
            "source_vocabulary_size": texts[0].vocabulary_size,
            "target_vocabulary_size": texts[1].vocabulary_size,
            **({"units": units} if isinstance(units, int) else {}),
        }

    def prepared(self, files: Sequence[str]) -> Translator:
        """The translator with words added, if there are to be any.

        It has no lexicon: that tells what another model does with its words.

        Args:
            files: The training text, source and target.

        Raises:
            ValueError: The tokenizers are sub-words, which can write any word,
                or the model takes no more.
        """
        old = self.translator
        if old.lexicon is not None:
            StatusLine().note(
                f"the lexicon of {self.init_from} is left out; `lexicon` makes "
                "one of the new model"
            )
        model, source, target = old.model, old.source_text, old.target_text
        if self.added_words:
            model, source, target = self._with_words(files)
        return Translator(model, source, target, old.decoding, old.dictionary)

    def _with_words(
        self, files: Sequence[str]
    ) -> tuple[keras.Model, WordTokenizer, WordTokenizer]:
        """Model and tokenizers with words added."""
        old, pair = self.translator, []
        for text, path in zip(
            (old.source_text, old.target_text), files, strict=True
        ):
            if not isinstance(text, WordTokenizer):
                raise ValueError(
                    f"--added_words: {self.init_from} has sub-words, which can "
                    "write any word; leave it out"
                )
            pair.append(with_added_words(text, [path], self.added_words))
        source, target = pair
        model = with_added_rows(
            old.model,
            source.vocabulary_size - old.source_text.vocabulary_size,
            target.vocabulary_size - old.target_text.vocabulary_size,
            (source.unk_id, target.unk_id),
        )
        return model, source, target


def began_with(settings: Path) -> Start | None:
    """The start that the settings of a training have; None without one.

    Raises:
        ValueError: The file is missing or damaged.
    """
    found = read_settings(settings)
    if "init_from" not in found:
        return None
    return Start(str(found["init_from"]), int(str(found["added_words"])))


def check_start(settings: Path, start: Start | None) -> None:
    """Checks that a begun training began with this start, or with none.

    Raises:
        ValueError: It did not.
    """
    before = began_with(settings)
    for name in ("init_from", "added_words"):
        was, now = (getattr(one, name, None) for one in (before, start))
        if was != now and not (name == "init_from" and _same(was, now)):
            raise ValueError(
                f"model_dir: {settings.parent} holds another model: --{name} "
                f"is {was!r} there and {now!r} now; name another folder"
            )


def _same(*folders: str | None) -> bool:
    """Whether two paths are of one folder, however they are written."""
    one, other = (folder and os.path.realpath(folder) for folder in folders)
    return one == other
