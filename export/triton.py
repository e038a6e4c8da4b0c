"""Serves an export in NVIDIA's Triton Inference Server, over HTTP and gRPC.

    python export/triton.py export/models/translator/1

The folder is what `bahdanau-tf export` printed: a SavedModel, or with --format=onnx a folder for
ONNX Runtime, which needs no TensorFlow. Each signature is a model with its name. Triton joins the
requests of several clients. It needs Linux and nvidia-pytriton, whose wheel contains the server.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import numpy as np
from signatures import inputs_of, signatures

LARGEST_BATCH = 32  # rows, as in batching.config
DELAY = 5000  # microseconds that a request waits for others, as there


def main() -> None:
    """Serves until SIGINT or SIGTERM; if Triton ends by itself, the exit status is 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="what `bahdanau-tf export` printed")
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 for all interfaces")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        parser.add_argument(f"--{name}_port", type=int, default=port)
    options = vars(parser.parse_args())
    folder, address = options.pop("folder"), options.pop("address")
    try:
        from pytriton.decorators import batch
        from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
        from pytriton.triton import Triton, TritonConfig

        functions = signatures(folder)
    except ModuleNotFoundError as error:
        parser.error(f"{error}: pip install nvidia-pytriton, and the package")
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    asked: list[int] = []  # the signals that came

    def end(number: int, _: object) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    batcher = DynamicBatcher(max_queue_delay_microseconds=DELAY)
    config = ModelConfig(max_batch_size=LARGEST_BATCH, batcher=batcher)
    with Triton(
        config=TritonConfig(http_address=address, grpc_address=address, **options)
    ) as server:
        for name, function in functions.items():
            rows = {key: np.array([[b"a"]], object) for key in inputs_of(name)}
            outputs = function(**rows)  # which also warms up
            server.bind(
                name,
                batch(function),
                [Tensor(name=key, dtype=bytes, shape=(1,)) for key in rows],
                [Tensor(name=key, dtype=x.dtype, shape=x.shape[1:]) for key, x in outputs.items()],
                config=config,
                strict=True,
            )
        print("Triton serves", ", ".join(functions), flush=True)
        server.serve()
    if not asked:
        sys.exit("triton.py: Triton has ended by itself")


if __name__ == "__main__":
    main()
