"""JoeyNMT: its own model, batches, loss and beam search.

A bidirectional GRU encoder and a GRU decoder with Bahdanau's attention and input feeding; the
softmax reads a tanh layer of `units`, not a maxout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from job import SIDES, Sentences, batches, main, progress, read_vocabulary, seconds
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

SYMBOLS = SimpleNamespace(
    unk_token="<unk>",
    unk_id=0,
    pad_token="<pad>",
    pad_id=1,
    bos_token="<s>",
    bos_id=2,
    eos_token="</s>",
    eos_id=3,
    sep_token=None,
    lang_tags=[],
)


def new_model(job: Any) -> Any:
    """A model with the sizes of `job`."""
    layer = {
        "type": "recurrent",
        "rnn_type": "gru",
        "hidden_size": job.units,
        "embeddings": {"embedding_dim": job.embedding_dim, "dropout": job.dropout},
        "dropout": job.dropout,
        "num_layers": 1,
    }
    configuration = {
        "embed_initializer": "normal",
        "embed_init_weight": 1.0,
        "encoder": layer | {"bidirectional": True},
        "decoder": layer
        | {
            "attention": "bahdanau",
            "input_feeding": True,
            "init_hidden": "bridge",
            "hidden_dropout": job.dropout,
        },
    }
    words = [Vocabulary(read_vocabulary(job.data, s), SYMBOLS) for s in SIDES]
    return build_model(configuration, *words)


def new_batch(model: Any, source: Sentences, target: Any = None) -> Batch:
    """A batch as JoeyNMT's data loader makes it, longest sources first."""
    ids, lengths, _ = model.src_vocab.sentences_to_ids(source, bos=False)
    if target is not None:
        target = torch.tensor(model.trg_vocab.sentences_to_ids(target)[0])
    batch = Batch(
        src=torch.tensor(ids),
        src_length=torch.tensor(lengths),
        src_prompt_mask=None,
        trg=target,
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=torch.device("cpu"),
        pad_index=model.pad_index,
        eos_index=model.eos_index,
    )
    batch.restore = batch.sort_by_src_length()
    return batch


def train(job: Any) -> Iterator[float]:
    """Trains as `joeynmt.training.TrainManager` does."""
    torch.set_num_threads(job.threads)
    torch.manual_seed(1)
    model = new_model(job)
    model.loss_function = ("crossentropy", 0.0)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), job.learning_rate)
    for source, target in batches(job):
        batch = new_batch(model, source, target)
        loss = model(return_type="loss", **vars(batch))[0]
        loss = batch.normalize(loss, "tokens")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()
        progress(job, loss.item())
        yield seconds(job)
    torch.save(model.state_dict(), Path(job.model, "weights"))
    Path(job.model, "settings").write_text(json.dumps(vars(job)))


def load(job: Any) -> Callable[[Sentences], Sentences]:
    """Beam search of a saved model, of exactly `job.steps` steps if given."""
    torch.set_num_threads(1)
    saved = json.loads(Path(job.model, "settings").read_text())
    model = new_model(SimpleNamespace(**saved))
    model.load_state_dict(torch.load(Path(job.model, "weights")))
    model.eval()

    def translate(sentences: Sentences) -> Sentences:
        batch = new_batch(model, sentences)
        ids = search(
            model,
            batch,
            max_output_length=job.steps or -1,
            min_output_length=job.steps or 1,
            beam_size=job.beam,
            beam_alpha=1.0,
        )[0]
        outputs = model.trg_vocab.arrays_to_sentences(ids[batch.restore])
        return [[w for w in words if w != "</s>"] for words in outputs]

    return translate


if __name__ == "__main__":
    main(train, load)
