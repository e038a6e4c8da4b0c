"""Packaging metadata; tool settings live in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"$',
    (HERE / "bahdanau_tf" / "__init__.py").read_text("utf-8"),
    flags=re.MULTILINE,
)

# tensorflow-text is compiled against one TensorFlow and has wheels for these
# platforms only; elsewhere the package installs without it.
HAS_TEXT_WHEEL = (
    "(sys_platform == 'linux' and platform_machine == 'x86_64') or "
    "(sys_platform == 'linux' and platform_machine == 'aarch64') or "
    "(sys_platform == 'darwin' and platform_machine == 'arm64')"
)

setup(
    name="bahdanau_tf",
    version=VERSION[1],
    description=(
        "Attention-based recurrent translation in TensorFlow and Keras: train, "
        "inspect, export and serve RNNsearch and its neighbours."
    ),
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    author="The bahdanau_tf authors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords="attention translation seq2seq tensorflow keras bahdanau",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["bahdanau_tf", "bahdanau_tf.*"]),
    package_data={
        "bahdanau_tf": [
            *("py.typed", "__init__.pyi", "recipes/*.flags", "*/*.css", "*/*.svg", "**/*.tsv"),
            *("*/*/*.json", "options/*.pyi", "runtime/html/*"),
            *("pretrained/phrases.*", "pretrained/*/*", "pretrained/*/*/*"),
        ]
    },
    zip_safe=False,
    python_requires=">=3.10,<3.14",
    install_requires=[
        "absl-py>=2.1",
        "keras>=3.12",
        "numpy>=1.26",
        "sacrebleu>=2.4",
        "sentencepiece>=0.2",
        "tensorflow>=2.18,<2.22",
        f"tensorflow-text>=2.18,<2.22; {HAS_TEXT_WHEEL}",
    ],
    extras_require={
        "beam": ["apache-beam>=2.77,<3"],
        "completion": ["argcomplete>=3.5"],
        "docs": ["furo>=2024.8.6", "myst-parser>=4.0.1", "sphinx>=8.1"],
        "onnx": ["onnx>=1.16", "onnxruntime>=1.18", "sentencepiece>=0.2.2"],
        "plot": ["matplotlib>=3.9"],
        "serving": ["tensorflow-serving-api>=2.18,<2.22"],
        "test": [
            "argcomplete>=3.5",
            "hypothesis>=6.100",
            "mypy>=2.4,<2.5",
            "pytest>=8.2",
            "pytest-xdist>=3.7",
            "pyyaml>=6",
            "ruff>=0.17,<0.18",
            "sacremoses>=0.1.1",
        ],
    },
    entry_points={"console_scripts": ["bahdanau-tf=bahdanau_tf.__main__:main"]},
)
