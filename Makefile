# `make demo` and `make test` are all that a new machine needs; BUILD.md says
# what they do. Each makes its own virtual environment with PYTHON.

PYTHON ?= python3

# .venv runs the sources as they lie (the demo, and your own trials);
# .venv-test holds the built wheel, which is what the tests test.
VENV := .venv
TEST_VENV := .venv-test
# .venv-serving holds the TensorFlow that TensorFlow Serving 2.20.0 is made of.
SERVING_VENV := .venv-serving
# .venv-beam holds Apache Beam, which needs older versions of protobuf and NumPy.
BEAM_VENV := .venv-beam
# .venv-triton holds Triton, whose Python models need the libpython of a system's Python.
TRITON_VENV := .venv-triton
# .venv-wasm holds the compiler of a page's products.
WASM_VENV := .venv-wasm
# Another PYTHON has another stamp, and so makes the environment anew.
STAMP := made-with-$(subst /,-,$(PYTHON))

# Folders are listed too: their time changes when a file goes.
SOURCES := $(shell find bahdanau_tf -name __pycache__ -prune -o -print)
PACKAGING := setup.py pyproject.toml README.md LICENSE

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-all check check-serving check-beam check-triton wasm site \
	bench format release clean

help:
	@echo "make demo      trains, translates, exports: the whole job on built-in text;"
	@echo "               LANGUAGE=ko or LANGUAGE=ja translates into Korean or Japanese"
	@echo "make test      the quick tests, against the built wheel"
	@echo "make test-all  the slow ones too"
	@echo "make check     format, lint and types"
	@echo "make check-serving   an export in the C++ runtime of TensorFlow 2.20.0"
	@echo "make check-beam      bulk translation with Apache Beam"
	@echo "make check-triton    an export in NVIDIA's Triton, over HTTP and gRPC"
	@echo "make wasm      compiles the products of a page to WebAssembly"
	@echo "make site      the documentation as a site: site/index.html"
	@echo "make bench     speed on this machine, as a table: bench.md"
	@echo "make format    formats the code"
	@echo "make release   tests, then wheel, sdist and checksums in dist"
	@echo "make clean     removes the virtual environments and what was built"

# LANGUAGE counts only as `make demo LANGUAGE=ko`: shells use a variable of this name.
demo: $(VENV)/installed
	$(VENV)/bin/bahdanau-tf demo $(if $(findstring command line,$(origin LANGUAGE)), \
		--language=$(LANGUAGE) --output_dir=demo-$(LANGUAGE))

test: $(TEST_VENV)/installed
	$(pytest)

test-all: $(TEST_VENV)/installed
	$(pytest) -m ""

check: $(TEST_VENV)/installed
	$(TEST_VENV)/bin/ruff format --check .
	$(TEST_VENV)/bin/ruff check .
	$(TEST_VENV)/bin/mypy

format: $(TEST_VENV)/installed
	$(TEST_VENV)/bin/ruff check --fix .
	$(TEST_VENV)/bin/ruff format .

# One file at a time: it prints memory and load times.
check-serving: $(TEST_VENV)/installed $(SERVING_VENV)/installed
	@mkdir -p $(TEST_VENV)/run
	cd $(TEST_VENV)/run && \
	SERVING_PYTHON="$(CURDIR)/$(SERVING_VENV)/bin/python" ../bin/pytest \
	-c "$(CURDIR)/pyproject.toml" -m "" "$(CURDIR)/tests/serving/test_c_runtime.py"

check-beam: $(BEAM_VENV)/installed
	@mkdir -p $(BEAM_VENV)/run
	cd $(BEAM_VENV)/run && ../bin/pytest -c "$(CURDIR)/pyproject.toml" -m "" \
	"$(CURDIR)/tests/serving/test_beam.py"

# `make check-triton TRITON_FLAGS=--source=test.en` sends other sentences.
check-triton: $(TRITON_VENV)/installed
	$(TRITON_VENV)/bin/python export/check_triton.py $(TRITON_FLAGS)
	$(TRITON_VENV)/bin/python export/check_triton.py --format=onnx $(TRITON_FLAGS)

# A test compares the bytes, which another version of the compiler may change.
HTML := bahdanau_tf/runtime/html
WASM := $(HTML)/products.wasm
wasm: $(WASM_VENV)/installed
	$(WASM_VENV)/bin/python -m ziglang cc --target=wasm32-freestanding \
		-mcpu=generic+simd128 -O2 -Wall -Wextra -fno-builtin -nostdlib \
		-Wl,--no-entry,--import-memory,--strip-all \
		-Wl,--initial-memory=65536,-z,stack-size=16384 -o $(WASM) $(HTML)/products.c
	@chmod -x $(WASM)

# From the pages as they lie and the docstrings of the built wheel.
site: $(TEST_VENV)/installed
	$(TEST_VENV)/bin/sphinx-build --fresh-env --quiet --fail-on-warning \
		--conf-dir docs . site
	@cp site/README.html site/index.html

# `make bench BENCH_FLAGS=--peers=joeynmt` also measures a peer's training.
bench: $(VENV)/installed
	@rm -f bench.md
	$(VENV)/bin/python benchmarks/training.py --size=small --bfloat16 \
		--table=bench.md $(BENCH_FLAGS)
	$(VENV)/bin/python benchmarks/training.py --size=paper --repeats=2 --bfloat16 \
		--table=bench.md $(BENCH_FLAGS)
	$(VENV)/bin/python benchmarks/threads.py --size=small --table=bench.md
	$(VENV)/bin/python benchmarks/threads.py --size=paper --repeats=2 --table=bench.md
	$(VENV)/bin/python benchmarks/threads.py --job=translation --table=bench.md
	$(VENV)/bin/python benchmarks/decoding.py --sentences=160 --shortlist \
		--table=bench.md
	$(VENV)/bin/python benchmarks/starting.py --table=bench.md
	@cat bench.md

# The tested wheel, and an sdist that builds a wheel of the same files.
release:
	@test -z "$$(git status --porcelain)" || { echo "make release: there are" \
		"changes that are not committed; wanted a clean tree" >&2; exit 1; }
	@version=$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' bahdanau_tf/__init__.py); \
	grep -q "^## $$version ([0-9-]*)$$" CHANGELOG.md || { echo "make release:" \
		"CHANGELOG.md has no heading '## $$version (DATE)'" >&2; exit 1; }
	$(MAKE) check test
	$(TEST_VENV)/bin/pip install --quiet build twine
	@rm -rf build dist/*.tar.gz
	$(TEST_VENV)/bin/python -m build --sdist --outdir dist .
	@rm -rf build
	$(TEST_VENV)/bin/pip wheel --quiet --no-deps --wheel-dir build dist/*.tar.gz
	@$(TEST_VENV)/bin/python -m zipfile -e dist/*.whl build/tested
	@$(TEST_VENV)/bin/python -m zipfile -e build/*.whl build/again
	diff -r build/tested build/again
	$(TEST_VENV)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	@rm -rf build *.egg-info
	@cd dist && sha256sum *.whl *.tar.gz | tee SHA256SUMS

clean:
	rm -rf $(VENV) $(TEST_VENV) $(SERVING_VENV) $(BEAM_VENV) $(TRITON_VENV) \
		$(WASM_VENV) build dist site *.egg-info

# From an empty folder, where only the installed package can be imported.
define pytest
@mkdir -p $(TEST_VENV)/run
cd $(TEST_VENV)/run && ../bin/pytest -c "$(CURDIR)/pyproject.toml" \
	--numprocesses=auto --dist=loadfile --no-loadscope-reorder \
	"$(CURDIR)/tests"
endef

define make_venv
@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' \
	2>/dev/null || { echo "bahdanau_tf needs Python 3.10 to 3.13, which" \
	"'$(PYTHON)' is not: name one, as in 'make $(MAKECMDGOALS)" \
	"PYTHON=python3.12'." >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "'$(PYTHON)'" \
	"cannot make a virtual environment: install its venv package, as in" \
	"'apt install python3-venv'." >&2; exit 1; }
@echo "Making $(@D) (the first time takes minutes: TensorFlow is large)"
@rm -rf $(@D)
@$(PYTHON) -m venv $(@D)
@touch $@
endef

$(VENV)/$(STAMP):
	$(make_venv)

$(TEST_VENV)/$(STAMP): setup.py
	$(make_venv)

$(SERVING_VENV)/$(STAMP):
	$(make_venv)

$(WASM_VENV)/$(STAMP):
	$(make_venv)

$(BEAM_VENV)/$(STAMP): setup.py
	$(make_venv)

# PYTHON=... names another Python whose libpython is where the system looks for it.
$(TRITON_VENV)/$(STAMP): PYTHON := /usr/bin/python3
$(TRITON_VENV)/$(STAMP): setup.py
	@command -v $(PYTHON) >/dev/null || { echo "make check-triton: there is no" \
		"$(PYTHON), wanted the system's Python, with its libpython:" \
		"'apt install python3-venv libpython3-dev'" >&2; exit 1; }
	$(make_venv)

$(VENV)/installed: $(VENV)/$(STAMP) $(PACKAGING)
	$(VENV)/bin/pip install --quiet --editable ".[plot]"
	@touch $@

$(SERVING_VENV)/installed: $(SERVING_VENV)/$(STAMP)
	$(SERVING_VENV)/bin/pip install --quiet \
		"tensorflow==2.20.0" "tensorflow-text==2.20.*"
	@touch $@

$(WASM_VENV)/installed: $(WASM_VENV)/$(STAMP)
	$(WASM_VENV)/bin/pip install --quiet "ziglang==0.17.1"
	@touch $@

$(BEAM_VENV)/installed: $(BEAM_VENV)/$(STAMP) dist/built
	$(BEAM_VENV)/bin/pip install --quiet "$$(ls dist/*.whl)[beam]" \
		hypothesis pytest
	@$(BEAM_VENV)/bin/pip install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@

$(TRITON_VENV)/installed: $(TRITON_VENV)/$(STAMP) dist/built
	$(TRITON_VENV)/bin/pip install --quiet "$$(ls dist/*.whl)[onnx]" \
		"nvidia-pytriton>=0.7,<0.8"
	@$(TRITON_VENV)/bin/pip install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@

# A folder left from an earlier build would bring deleted modules back.
dist/built: $(TEST_VENV)/$(STAMP) $(PACKAGING) $(SOURCES)
	@rm -rf build dist *.egg-info
	$(TEST_VENV)/bin/pip wheel --quiet --no-deps --wheel-dir dist .
	@rm -rf build *.egg-info
	@touch $@

$(TEST_VENV)/installed: dist/built
	$(TEST_VENV)/bin/pip install --quiet \
		"$$(ls dist/*.whl)[docs,onnx,plot,serving,test]"
	@$(TEST_VENV)/bin/pip install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@
