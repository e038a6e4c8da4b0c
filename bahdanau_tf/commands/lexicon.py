"""Learns a lexicon from the attention of a trained model.

For each source word it keeps the target words that attend to it most, in the pairs of --source and
--target; the training pairs work best. Pairs of more than 50 tokens are left out. The lexicon is
written next to the best model of --model_dir as lexicon.npz, where translate, evaluate and export
find it for --shortlist: they then score only the first words of the vocabulary and those in the
lexicon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.commands.flags import Group, Modules, Threads, check_files
from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.training import packaged
from bahdanau_tf.system.files import check_folder
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import ProgressLine, StatusLine, amount

if TYPE_CHECKING:
    import tensorflow as tf

    from bahdanau_tf.data.dataset import Batch
    from bahdanau_tf.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class _Files(OptionGroup):
    model_dir: str | None = option("folder of a trained model with attention", required=True)
    source: str | None = option("text that the model translates", required=True)
    target: str | None = option("its translation", required=True)


@dataclass(frozen=True)
class _Learning(Threads, Modules):
    words: int = option("number of target words for each source word", 10, Range(1, 10_000))
    frequent: int = option(
        "number of first words of the target vocabulary, special symbols included, that every "
        "sentence may use, besides the bytes of a sub-word vocabulary; more are slower and "
        "closer to the whole vocabulary",
        2000,
        Range(1, 10**9),
    )


GROUPS = (Group(_Files), Group(_Learning, "Lexicon"))


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_files(flags, "source", "target")
    if packaged(flags.model_dir):
        raise ValueError(
            f"--model_dir is {flags.model_dir}, which comes with the package, wanted a folder of "
            f"your own: Translator.from_preset({flags.model_dir!r}).save('FOLDER') makes one"
        )


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    from bahdanau_tf.data.dataset import make_dataset
    from bahdanau_tf.system.device import use_threads
    from bahdanau_tf.translation import Lexicon, learn_lexicon
    from bahdanau_tf.translation.saved import LEXICON, best_folder
    from bahdanau_tf.translator import Translator

    use_threads(flags.threads)
    folder = best_folder(flags.model_dir)
    check_folder("model_dir", str(folder))
    corpus = ParallelCorpus(flags.source, flags.target)
    translator = Translator.load(folder)
    text = translator.target_text
    first = first_ids(text, flags.frequent)
    Lexicon(np.full([1, 1], -1), first).check(1, text)
    if first == text.vocabulary_size:
        StatusLine().note(
            f"--frequent={flags.frequent} is the whole target vocabulary of "
            f"{first} words: the lexicon will be empty and --shortlist useless; wanted fewer"
        )
    batches = make_dataset(corpus, translator.source_text, translator.target_text, shuffle="none")
    lexicon = learn_lexicon(translator.model, _reported(batches, len(corpus)), flags.words, first)
    lexicon.save(folder / LEXICON)
    print(
        f"{folder / LEXICON}: {(lexicon.words >= 0).sum()} target words for "
        f"{(lexicon.words >= 0).any(axis=1).sum()} source words, besides the "
        f"first {lexicon.first} of the vocabulary"
    )


def first_ids(text: Tokenizer, words: int) -> int:
    """The number of first ids that contain `words` words, or all ids.

    In a sub-word vocabulary the ids of 256 bytes, which are not words, come first.
    """
    import tensorflow as tf

    from bahdanau_tf.text.tokenizer import BYTE

    tokens = text.ids_to_tokens(tf.range(text.vocabulary_size)).numpy()
    ids = [i for i, token in enumerate(tokens) if not BYTE.fullmatch(token)]
    return ids[min(words, len(ids)) - 1] + 1


def _reported(batches: tf.data.Dataset, pairs: int) -> Iterator[Batch]:
    progress = ProgressLine(pairs)
    done = 0
    for batch in batches:
        yield batch
        done += len(batch[1])
        progress.update(done, "pairs read")
    some = f"{done:,} of {amount(pairs, 'pair')}; the others are too long"
    progress.note(f"learned from {some if done < pairs else amount(pairs, 'pair')}")
