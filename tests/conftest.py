"""Settings of all tests: quiet TensorFlow, seeds, the folder `shared`."""

import gc
import importlib.util
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

# TensorFlow reads these when it is first imported: few messages, no GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Servers of tests are on this machine, behind no proxy.
os.environ["no_proxy"] = "127.0.0.1,localhost"

import hypothesis
import pytest
from browser import Page, find_chromium

gc.disable()  # until all tests are imported

# A job in the background ignores Ctrl-C, and so would what it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Imported where they are first used, because the controller of pytest-xdist,
# which only distributes tests, does not need them.
ENGINES = ("tensorflow", "keras")

SHARED = Path(__file__).resolve().parents[2] / "shared"

# Tests also run on busy machines: half the usual examples, no deadline, and slow generation is
# accepted.
hypothesis.settings.register_profile(
    "bahdanau_tf",
    max_examples=50,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("bahdanau_tf")

# The slowest files start first, so that no worker of pytest-xdist runs one of
# them alone at the end.
LONGEST_FIRST = (
    *("engines", "conformance", "models", "training", "distribution", "fit", "runtime"),
    *("named_parts", "chosen", "rate", "translator", "tokenizer", "cli", "lexicon", "dataset"),
    *("tracing", "products", "serving", "old_files", "notebooks", "callbacks", "page"),
    *("fine_tuning", "loading", "survival", "export_kit", "minimal_model", "layers", "threads"),
    *("search", "fast_training", "minimum_risk", "learning", "ensemble", "groundhog", "kills"),
    *("flags", "prefixes", "export_nodes", "replicas", "subword", "report", "align", "choices"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the test files, each in its own order."""
    places = {f"test_{name}": n for n, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_report_header() -> str:
    """Reports the location of the tested package and the versions used."""
    package = importlib.util.find_spec("bahdanau_tf")
    versions = (f"{name} {metadata.version(name)}" for name in ENGINES)
    return ", ".join([*package.submodule_search_locations, *versions])


def pytest_collection_finish() -> None:
    """Excludes everything imported so far from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A self-signed certificate for this machine, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-out", str(paths[0]), "-keyout", str(paths[1])),
        ],
        check=True,
        capture_output=True,
    )
    return paths


@pytest.fixture(scope="session", autouse=True)
def graphs_as_traced(request):
    """Runs graphs without TensorFlow's optimizer in quick tests.

    It takes up to half of a graph's first run. `make test-all` has it.
    """
    import tensorflow as tf

    is_quick = request.config.option.markexpr == "not slow"
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": is_quick})


@pytest.fixture(scope="module", autouse=True)
def tensorflow_seeded():
    """Seeds TensorFlow once per file.

    Setting its seed discards all graphs that have run, which costs a second. A test that depends on
    TensorFlow's random numbers sets its own seed.
    """
    import keras

    keras.utils.set_random_seed(1409)


@pytest.fixture(autouse=True)
def seeded():
    """Makes failures reproducible, whatever tests ran before.

    Keras draws its seeds from Python's `random`, also those of initial weights.
    """
    import numpy as np

    random.seed(1409)
    np.random.seed(1409)


@pytest.fixture(scope="module")
def eager_search() -> Iterator[None]:
    """Searches and scores eagerly, for files of tests about something else."""
    from toys import search_eagerly

    with pytest.MonkeyPatch.context() as patch:
        search_eagerly(patch)
        yield


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Finds a file or folder of ../shared, or skips the test."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"needs ../shared/{name}, which is not on this machine")
        return path

    return find


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    """A page in Chromium; skips the test without Chromium."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("needs Chromium")
    page = Page(chromium, tmp_path_factory.mktemp("profile"))
    yield page
    page.close()
