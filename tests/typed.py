"""What type checkers say of a user's program: mypy checks this file with the package.

Every mistake has the error that mypy must report. Where it reports none, or another,
`make check` fails.
"""

from pathlib import Path

import bahdanau_tf as bt
from bahdanau_tf import Decoding, NoSuchName, RNNSearch, Translator  # type: ignore[attr-defined]

bt.NoSuchName  # type: ignore[attr-defined]
bt.evaluation.no_such_name  # type: ignore[attr-defined]
Decoding(beam=3)  # type: ignore[call-arg]
Decoding(beam_size="3")  # type: ignore[arg-type]
Translator.load(3)  # type: ignore[arg-type]
RNNSearch(10)  # type: ignore[call-arg]
bt.GRUCell(units="many")  # type: ignore[arg-type]
bt.GRUCell(8, recurent_initializer="zeros")  # type: ignore[call-arg]
bt.DotAttention(nme="a")  # type: ignore[call-arg]
bt.GRUCell(8, kernel_initializer="zeros", name="cell", dtype="float32", trainable=False)
RNNSearch(9, 9, step_oder="appendix")  # type: ignore[call-arg]
RNNSearch(9, 9, tie_embeddings="yes")  # type: ignore[arg-type]
RNNSearch(9, 9, units=4, step_order="appendix", readout=bt.TanhReadout(9, 4), name="model")
bt.Seq2SeqLSTM(9, 9, maxout_units=4)  # type: ignore[call-arg]
bt.Adam(beta=0.9)  # type: ignore[call-arg]
bt.Recipe(minutes="five")  # type: ignore[arg-type]

bt.fit("a.tsv", unitz=8)  # type: ignore[call-arg]
bt.fit("a.tsv", units="many")  # type: ignore[arg-type]
bt.fit("a.tsv", tokenizer="chars")  # type: ignore[arg-type]
translator = bt.fit(["a"], ["b"], minutes=1, units=8, tokenizer="bpe", init_from=Path("model"))
translator.translate(3)  # type: ignore[call-overload]
translation = translator.translate("a")
translation.txt  # type: ignore[attr-defined]
text: str = translation.text
texts: list[str] = [each.text for each in translator.translate(["a", "b"])[:1]]
