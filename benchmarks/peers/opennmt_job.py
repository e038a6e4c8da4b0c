"""OpenNMT-py: its own model, loss, optimizer and translator.

A bidirectional encoder of `units` per direction, a decoder of twice as many units (OpenNMT-py makes
it as wide as both directions), MLP attention, input feeding.
"""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from job import SIDES, Sentences, batches, main, progress, read_vocabulary, seconds
from onmt.inputters.inputter import dict_to_vocabs, vocabs_to_dict
from onmt.inputters.text_utils import numericalize, tensorify
from onmt.model_builder import build_model
from onmt.opts import train_opts, translate_opts
from onmt.translate import TranslationBuilder
from onmt.translate.translator import build_translator
from onmt.utils.loss import LossCompute
from onmt.utils.optimizers import Optimizer
from onmt.utils.parse import ArgumentParser

SYMBOLS = ["<unk>", "<blank>", "<s>", "</s>"]


def options(define: Callable[[Any], None], **changes: Any) -> Any:
    """OpenNMT-py's options: its defaults with some changes."""
    parser = ArgumentParser()
    define(parser)
    pairs = ((f"-{name}", str(value)) for name, value in changes.items())
    return parser.parse_args([*itertools.chain(*pairs)])


def new_batch(vocabularies: Any, source: Sentences, target: Any = None) -> Any:
    """A batch as OpenNMT-py's iterator makes it."""
    examples = []
    for number, words in enumerate(source):
        example = {
            "src": {"src": " ".join(words)},
            "tgt": None,
            "cid": "text",
            "cid_line_number": number,
        }
        if target is not None:
            example["tgt"] = {"tgt": " ".join(target[number])}
        examples.append((numericalize(vocabularies, example), number))
    return tensorify(vocabularies, examples, torch.device("cpu"))


def train(job: Any) -> Iterator[float]:
    """Trains as `onmt.trainer.Trainer` does."""
    torch.set_num_threads(job.threads)
    torch.manual_seed(1)
    settings = options(
        train_opts,
        data="{}",
        src_vocab="",
        word_vec_size=job.embedding_dim,
        hidden_size=2 * job.units,
        layers=1,
        encoder_type="brnn",
        rnn_type="GRU",
        global_attention="mlp",
        input_feed=1,
        dropout=job.dropout,
        optim="adam",
        learning_rate=job.learning_rate,
        max_grad_norm=1,
    )
    ArgumentParser.update_model_opts(settings)
    words = [SYMBOLS + read_vocabulary(job.data, side) for side in SIDES]
    vocabularies = dict_to_vocabs({"data_task": "seq2seq", "src": words[0], "tgt": words[1]})
    model = build_model(settings, settings, vocabularies, None, -1)
    model.train()
    loss_of = LossCompute.from_opts(settings, model, vocabularies["tgt"])
    optimizer = Optimizer.from_opt(model, settings)
    for source, target in batches(job):
        batch = new_batch(vocabularies, source, target)
        optimizer.zero_grad(set_to_none=True)
        outputs, attentions = model(batch["src"], batch["tgt"], batch["srclen"])
        loss, _ = loss_of(batch, outputs, attentions)
        loss /= (batch["tgtlen"] - 1).sum()
        optimizer.backward(loss)
        optimizer.step()
        progress(job, loss.item())
        yield seconds(job)
    weights = model.state_dict()
    of_output = {k for k in weights if k.startswith("generator.")}
    torch.save(
        {
            "model": {k: weights[k] for k in weights.keys() - of_output},
            "generator": {k.split(".")[1]: weights[k] for k in of_output},
            "vocab": vocabs_to_dict(vocabularies),
            "opt": settings,
        },
        Path(job.model, "model.pt"),
    )


def load(job: Any) -> Callable[[Sentences], Sentences]:
    """Beam search of a saved model, of exactly `job.steps` steps if given."""
    torch.set_num_threads(1)
    # Options are saved as an object, which newer versions of torch refuse.
    torch.load = functools.partial(torch.load, weights_only=False)
    limits = {"min_length": job.steps, "max_length": job.steps}
    settings = options(
        translate_opts,
        model=str(Path(job.model, "model.pt")),
        src="",
        beam_size=job.beam,
        batch_size=job.batch,
        **(limits if job.steps else {}),
    )
    if job.steps:
        settings.max_length_ratio = 0
    translator = build_translator(
        settings, device_id=-1, report_score=False, out_file=io.StringIO()
    )
    builder = TranslationBuilder(translator.vocabs)

    def translate(sentences: Sentences) -> Sentences:
        # The encoder packs a batch, so the longest sentence comes first.
        batch = new_batch(translator.vocabs, sentences)
        with torch.no_grad():
            result = translator.translate_batch(batch, attn_debug=False)
        return [t.pred_sents[0] for t in builder.from_batch(result)]

    return translate


if __name__ == "__main__":
    main(train, load)
