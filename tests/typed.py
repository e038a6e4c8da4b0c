"""What type checkers say of a user's program: mypy checks this file with the package.

Every mistake has the error that mypy must report. Where it reports none, or another,
`make check` fails.
"""

import bahdanau_tf as bt
from bahdanau_tf import Decoding, NoSuchName, RNNSearch, Translator  # type: ignore[attr-defined]

bt.NoSuchName  # type: ignore[attr-defined]
bt.evaluation.no_such_name  # type: ignore[attr-defined]
Decoding(beam=3)  # type: ignore[call-arg]
Decoding(beam_size="3")  # type: ignore[arg-type]
Translator.load(3)  # type: ignore[arg-type]
RNNSearch(10)  # type: ignore[call-arg]
bt.GRUCell(units="many")  # type: ignore[arg-type]
bt.Adam(beta=0.9)  # type: ignore[call-arg]
bt.Recipe(minutes="five")  # type: ignore[arg-type]

translator = bt.fit(["a"], ["b"], minutes=1)
translator.translate(3)  # type: ignore[call-overload]
translation = translator.translate("a")
translation.txt  # type: ignore[attr-defined]
text: str = translation.text
texts: list[str] = [each.text for each in translator.translate(["a", "b"])[:1]]
