"""The trained model that a training starts from, by `init_from`: how it is read, fitted and copied.

The folder of the training has a copy, so that the training resumes without the model's own folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import keras

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.models.scoring import with_added_rows, with_new_vocabularies
from bahdanau_tf.options import TextOptions
from bahdanau_tf.options.choices import vocabulary_sizes
from bahdanau_tf.options.facts import Facts
from bahdanau_tf.options.model import DROPOUT, SUBWORDS
from bahdanau_tf.options.training import StartOptions, refuse
from bahdanau_tf.system.ranges import Refusal, named
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.script import guess_language, swapped_sides
from bahdanau_tf.text.subwords import copies
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.words import with_added_words
from bahdanau_tf.training.ask import Training
from bahdanau_tf.training.folder import TEXT, Change, read_settings, write_settings
from bahdanau_tf.training.text import LINES, first_lines, learn_side, note_sizes
from bahdanau_tf.translation.doubts import strange_characters
from bahdanau_tf.translator import Translator

START = "start"  # in the folder: the copy


def load_start(init_from: str) -> Translator:
    """The translator of a folder; raises ValueError if there is none that can be trained."""
    try:
        translator = Translator.load(init_from)
    except Refusal as error:
        raise Refusal("fit", f"{named('init_from')}: {error.what}") from error
    if not isinstance(translator.model, keras.Model) or len(translator.source_texts) != 1:
        what = f"{init_from} holds an ensemble, wanted a single model"
        raise Refusal("fit", f"{named('init_from')}: {what}")
    return translator


def new_vocabularies(trained: Translator, corpus: ParallelCorpus, facts: Facts) -> dict[str, int]:
    """The sizes of the vocabularies, by side, that a text of another language needs.

    It is of another one if the tokenizer of the model lacks most of its letters.
    """
    sides = dict(zip(SIDES, (trained.source_text, trained.target_text), strict=True))
    kinds = {"tokenizer": sides["source"].kind, "target_tokenizer": sides["target"].kind}
    sizes = {}
    for (side, text), lines in zip(sides.items(), first_lines(corpus, LINES), strict=True):
        letters = Counter(x for line in lines for x in line if x.isalpha())
        usual = {x for letter in text.characters for x in (letter, letter.lower(), letter.upper())}
        strange = strange_characters("".join(letters), usual)
        if 2 * sum(letters[x] for x in strange) > letters.total():
            sizes[side] = vocabulary_sizes(facts, kinds)[f"{side}_vocabulary_size"]
    return sizes


def options_of(trained: Translator, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The sizes and the tokenizers of a trained model, as options, on which others depend.

    `sizes` are those of its new vocabularies. Rates of dropout that its config lacks are 0.
    """
    source, target = trained.source_text, trained.target_text
    actual = {"source": source.vocabulary_size, "target": target.vocabulary_size, **sizes}
    options: dict[str, Any] = {f"{side}_vocabulary_size": size for side, size in actual.items()}
    options |= {"tokenizer": source.kind, "target_tokenizer": target.kind}
    model: keras.Model = trained.model
    config = model.get_config()
    if isinstance(units := config.get("units"), int):
        options["units"] = units
    options |= {name: 0.0 for name in DROPOUT if name not in config}
    return options | {"is_other_language": bool(sizes)}


def settings_of(start: StartOptions) -> dict[str, object]:
    """The settings of the start, which a resumed training keeps."""
    is_used = start.init_from is not None
    return {"init_from": start.init_from, "added_words": start.added_words if is_used else None}


def copy_start(
    trained: Translator, training: Training, corpus: ParallelCorpus, sizes: Mapping[str, int]
) -> None:
    """Writes a copy of a trained model, fitted to a text, and its settings.

    It has no lexicon, which describes how another model translates words. With new vocabularies, of
    these `sizes`, it has no dictionary and no habits, either.
    """
    start = training.start
    sources, _ = first_lines(corpus, LINES)
    if doubt := swapped_sides(sources, trained.habits.languages):
        StatusLine().note(doubt)
    kinds = {trained.source_text.kind, trained.target_text.kind}
    if training.recipe.sample_subwords and not kinds <= {*SUBWORDS}:
        what = f"{start.init_from} has no sub-words; leave it out"
        raise Refusal("fit", f"{named('sample_subwords')}: {what}")
    if trained.lexicon is not None:
        StatusLine().note(
            f"{start.init_from}'s lexicon is not used; `lexicon` makes one for the new model"
        )
    if sizes:
        parts = _renewed(trained, start, corpus, sizes)
        fitted = Translator(*parts, trained.decoding)
    else:
        parts = _fitted(trained, start, corpus)
        fitted = Translator(*parts, trained.decoding, trained.dictionary)
        fitted.habits = trained.habits
    fitted.save(training.model_dir / START)
    write_settings(training.model_dir / TEXT, settings_of(start))
    note_sizes(parts[1:], corpus)


def of_folder(training: Training) -> Translator:
    """The copy that the folder of a training has, with the dropout of this training."""
    translator = Translator.load(training.model_dir / START)
    model: keras.Model = translator.model
    if rates := dropout_of(training, model):
        renewed = model.from_config(model.get_config() | rates)
        renewed.set_weights(model.get_weights())
        translator.model = renewed
    return translator


def dropout_of(training: Training, model: keras.Model) -> dict[str, float]:
    """The new dropout of a trained model; raises ValueError if the user gave one that it lacks."""
    config = model.get_config()
    others = [name for name in DROPOUT if name not in config]
    refuse(training.user_options, others, f"with {training.start.init_from}, whose model has none")
    return {name: rate for name, rate in training.dropout.items() if name in config}


def check_start(training: Training) -> None:
    """Raises a ValueError unless the training in a folder started with the same model."""
    before = read_settings(training.model_dir / TEXT)
    for name, new in settings_of(training.start).items():
        old = before.get(name)
        is_same = old == new
        if name == "init_from" and old and new:  # however the path is written
            is_same = os.path.realpath(str(old)) == os.path.realpath(str(new))
        if not is_same:
            raise Change(name, old, new).refusal(training.model_dir)


def _renewed(
    trained: Translator, start: StartOptions, corpus: ParallelCorpus, sizes: Mapping[str, int]
) -> tuple[keras.Model, Tokenizer, Tokenizer]:
    """The model and the tokenizers for a text of another language, on the sides of `sizes`."""
    if start.added_words:
        what = f"{start.init_from} gets a new vocabulary for the {' and the '.join(sizes)}"
        raise Refusal("fit", f"{named('added_words')}: {what}; leave it out")
    sides: list[Tokenizer] = [trained.source_text, trained.target_text]
    rows = zip(SIDES, corpus.names, first_lines(corpus, LINES), strict=True)
    for place, (side, path, lines) in enumerate(rows):
        if side in sizes:
            StatusLine().note(
                f"{start.init_from} cannot read the letters of the {side}: its vocabulary and its "
                "embeddings are new; all other weights are kept"
            )
            old = sides[place]
            text: dict[str, Any] = {"tokenizer": old.kind, f"{side}_vocabulary_size": sizes[side]}
            if old.kind == "word":
                text[f"{side}_language"] = guess_language(lines)
            options = {name: getattr(old, name) for name in ("reverse", "true_case")}
            sides[place] = learn_side(TextOptions(**text), side, path, **options)
    source, target = sides
    actual = dict(zip(SIDES, (source.vocabulary_size, target.vocabulary_size), strict=True))
    model = with_new_vocabularies(trained.model, {side: actual[side] for side in sizes})
    learn_copies(model, source, target)
    return model, source, target


def learn_copies(model: keras.Model, source: Tokenizer, target: Tokenizer) -> None:
    """Gives a model that copies the target id of each source id."""
    if model.copying is not None:
        model.copying.copies.assign(copies(source, target))


def _fitted(
    trained: Translator, start: StartOptions, corpus: ParallelCorpus
) -> tuple[keras.Model, Tokenizer, Tokenizer]:
    """The model and the tokenizers for a text: with `added_words`, its most frequent unknown ones.

    All other weights and ids stay as they are.
    """
    model, source, target = trained.model, trained.source_text, trained.target_text
    if not start.added_words:
        return model, source, target
    if not (isinstance(source, WordTokenizer) and isinstance(target, WordTokenizer)):
        what = f"{start.init_from} has sub-words, which can write any word; leave it out"
        raise Refusal("fit", f"{named('added_words')}: {what}")
    sizes = source.vocabulary_size, target.vocabulary_size
    source = with_added_words(source, corpus.names[:1], start.added_words)
    target = with_added_words(target, corpus.names[1:], start.added_words)
    rows = source.vocabulary_size - sizes[0], target.vocabulary_size - sizes[1]
    model = with_added_rows(model, *rows, (source.unk_id, target.unk_id))
    learn_copies(model, source, target)
    return model, source, target
