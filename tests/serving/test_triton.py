"""`export/triton.py`, with a stand-in for Triton, which needs a large download."""

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engines import subwords as translator
from refusals import refused
from test_runtime import SENTENCES
from toys import with_alternatives

from bahdanau_tf import Decoding, Translation, Translator
from bahdanau_tf.runtime import onnx

KIT = Path(__file__).resolve().parents[2] / "export"
PREFIXES = ["un chat", "le", "", "dort", "le", "a"]
pytestmark = pytest.mark.usefixtures("eager_search")
LONG = [b"a dog " * 1667, b"x" * 1_000_000]
ODD = [*LONG, b"\0", b"a\0dog", b"\xff\xfe a \x80 dog \xc3"]


class Triton(dict[str, Any]):
    """Keeps what is bound, in place of a server, and ends at SIGTERM, or by itself."""

    def __init__(self, ends_itself: bool) -> None:
        super().__init__()
        self.ends_itself, self.handlers = ends_itself, dict[int, Any]()

    def __enter__(self) -> "Triton":
        return self

    def __exit__(self, *_: object) -> None:
        """Stops nothing."""

    def bind(self, name: str, function: Any, inputs: Any, outputs: Any, **_: Any) -> None:
        self[name] = function, inputs, outputs

    def serve(self) -> None:
        with suppress(KeyboardInterrupt):  # as pytriton does
            if not self.ends_itself:
                self.handlers[SIGTERM](SIGTERM, None)


def serve(
    patch: pytest.MonkeyPatch, folder: Path, has_pytriton: bool = True, ends_itself: bool = False
) -> Triton:
    """Runs `triton.py` with a stand-in for pytriton, if that is installed at all."""
    server = Triton(ends_itself)
    patch.setattr("signal.signal", server.handlers.__setitem__)
    classes = ("DynamicBatcher", "ModelConfig", "Tensor", "TritonConfig")
    pytriton = SimpleNamespace(
        batch=lambda function: function,
        Triton=lambda config: server,
        **dict.fromkeys(classes, SimpleNamespace),
    )
    patch.syspath_prepend(KIT)
    for name in ("decorators", "model_config", "triton"):
        patch.setitem(sys.modules, f"pytriton.{name}", pytriton if has_pytriton else None)
    patch.setattr(sys, "argv", ["triton.py", str(folder)])
    importlib.import_module("triton").main()
    return server


@pytest.fixture(scope="module")
def own() -> Translator:
    made = translator(factored_output=True)
    made.decoding = Decoding(beam_size=3, max_length=9)
    return made


@pytest.fixture(scope="module", params=["onnx", pytest.param("savedmodel", marks=pytest.mark.slow)])
def served(request, own, tmp_path_factory) -> Triton:
    folder = tmp_path_factory.mktemp("export") / "new"
    if request.param == "onnx":
        onnx.export_runtime(own.graph, folder)
    else:
        folder = own.export(folder, max_source_length=20, max_target_length=9)
    with pytest.MonkeyPatch.context() as patch:
        return serve(patch, folder)


def reply(served: Triton, signature: str, *columns: list[Any]) -> dict[str, np.ndarray]:
    """The outputs of a signature, which have the dtypes and shapes that Triton expects."""
    function, inputs, outputs = served[signature]
    encoded = [[x if isinstance(x, bytes) else x.encode() for x in column] for column in columns]
    rows = [np.array(column, object)[:, None] for column in encoded]
    results = function(**{x.name: y for x, y in zip(inputs, rows, strict=True)})
    assert {x.name: (x.dtype, (len(rows[0]), *x.shape)) for x in outputs} == {
        name: (array.dtype, array.shape) for name, array in results.items()
    }
    return results


def assert_best(outputs: dict[str, np.ndarray], wanted: list[Translation]) -> None:
    assert [x.decode() for x in outputs["translation"].flat] == [x.text for x in wanted]
    assert outputs["finished"].flatten().tolist() == [x.finished for x in wanted]
    assert outputs["truncated"].flatten().tolist() == [not x.finished for x in wanted]
    if "score" in outputs:
        np.testing.assert_allclose(outputs["score"][:, 0], [x.score for x in wanted], atol=1e-4)


def test_signatures_return_the_translations_of_python(served, own):
    wanted = own.translate(SENTENCES, n_best=3)
    for signature in {"serving_default", "align"} & {*served}:
        assert_best(reply(served, signature, SENTENCES), wanted)
    greedy = own.translate(SENTENCES, own.decoding.greedy())
    assert_best(reply(served, "greedy", SENTENCES), greedy)
    prefixed = own.translate(SENTENCES, prefixes=PREFIXES)
    assert_best(reply(served, "complete", SENTENCES, PREFIXES), prefixed)
    several = reply(served, "n_best", SENTENCES)
    for row, best in enumerate(wanted):
        texts = [x.text.encode() for x in with_alternatives(best)]
        assert several["translations"][row].tolist() == texts + [b""] * (3 - len(texts))
        assert several["finished"][row].sum() == sum(x.finished for x in with_alternatives(best))
    if "score" in served:
        scored = reply(served, "score", SENTENCES, PREFIXES)["log_prob"][:, 0]
        expected = [x.log_prob for x in own.score(SENTENCES, PREFIXES)]
        np.testing.assert_allclose(scored, expected, atol=1e-4)


def test_odd_rows_change_no_other_row(served):
    for signature, (_, inputs, _) in served.items():
        mixed = reply(served, signature, *[[*ODD, *SENTENCES]] * len(inputs))
        alone = reply(served, signature, *[SENTENCES] * len(inputs))
        assert mixed["truncated"][: len(LONG)].all()
        if "translation" in mixed:  # of their starts
            assert all(mixed["translation"][: len(LONG)].flat)
        for name, rows in alone.items():
            others = mixed[name][len(ODD) :]
            if rows.dtype == np.float32:
                np.testing.assert_allclose(others, rows, atol=1e-5)
            else:
                np.testing.assert_equal(others, rows)


@pytest.mark.parametrize(
    ("has_pytriton", "complaint"),
    [(True, "has no export, wanted the folder"), (False, "pip install nvidia-pytriton")],
)
def test_mistakes_are_said_in_a_sentence(has_pytriton, complaint, tmp_path, monkeypatch, capsys):
    refused(lambda: serve(monkeypatch, tmp_path, has_pytriton), "2", by=SystemExit)
    assert complaint in capsys.readouterr().err


def test_a_server_that_ends_by_itself_is_a_failure(tmp_path, monkeypatch):
    """So that whoever watches `triton.py` starts it again."""
    (tmp_path / "runtime.json").touch()
    monkeypatch.syspath_prepend(KIT)
    monkeypatch.setattr(importlib.import_module("signatures"), "_of_onnx", lambda folder: {})
    serve(monkeypatch, tmp_path)
    refused(
        lambda: serve(monkeypatch, tmp_path, ends_itself=True),
        "Triton has ended by itself",
        by=SystemExit,
    )
