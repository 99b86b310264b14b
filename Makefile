# The one list of commands. Everything it needs, it installs: see scripts/system-packages.sh.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FLOOR_TORCH := 2.11.0
FLOOR_VENV := .venv-floor
DATA ?= demo/photos
PEERS := forebay,torch-pil,torch-v2,torch-opencv,dali,spdl
# For test-gpu and bench-gpu: a wheel that was built elsewhere, and where it is unpacked.
WHEEL = $(lastword $(sort $(wildcard dist/forebay-*.whl)))
UNPACKED := build/from-wheel
WITH_UNPACKED = PYTHONPATH=$(abspath $(UNPACKED))$${PYTHONPATH:+:$$PYTHONPATH}

RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
NATIVE_SOURCES := $(shell find cpp torch_ext -type f)
NATIVE_STYLED = $(shell find cpp torch_ext tests/cpp tests/kernels -name '*.h' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu')
PYTHON_SOURCES := $(shell find python -name '*.py') setup.py pyproject.toml

.PHONY: demo test check quick build wheel fmt lint test-rust test-cpp test-python test-floor test-gpu soak bench bench-gpu \
	unpacked profile corpus parity logits clean

demo: build
	$(BIN)/forebay demo

test: check
check: lint test-rust test-cpp test-python

quick: build
	cargo test --workspace --quiet
	$(BIN)/pytest

build: $(VENV)/.built

# torch, the linters and the peers that tests compare with.
$(VENV)/.deps: pyproject.toml
	PYTHON=$(PYTHON) scripts/system-packages.sh
	@echo "once: installing torch, torchvision and the linters into $(VENV), several GB with CUDA's libraries"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip "setuptools>=77"
	$(BIN)/pip install --quiet torch torchvision torchdata numpy pillow pytest ruff mypy clang-format
	touch $@

$(VENV)/.built: $(VENV)/.deps $(RUST_SOURCES) $(NATIVE_SOURCES) $(PYTHON_SOURCES) README.md
	rm -rf build
	@echo "building the Rust core and the extension: some minutes the first time, silent until it is done"
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	touch $@

wheel: $(VENV)/.deps
	rm -rf build
	$(BIN)/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .

fmt: $(VENV)/.deps
	cargo fmt --all
	$(BIN)/ruff format python tests benches setup.py
	$(BIN)/ruff check --fix --quiet python tests benches setup.py
	$(BIN)/clang-format -i $(NATIVE_STYLED)

lint: $(VENV)/.deps
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check --quiet python tests benches setup.py
	$(BIN)/ruff check --quiet python tests benches setup.py
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_STYLED)

# torch's NVRTC compiles the kernels in a test.
test-rust: $(VENV)/.deps
	FOREBAY_CUDA_FOLDERS=$$(echo $(VENV)/lib/python3*/site-packages/nvidia/*/lib | tr ' ' ':') \
		cargo test --workspace --quiet

test-cpp: build
	sh tests/cpp/run.sh

test-python: build
	$(BIN)/pytest

# The same wheel under the oldest torch that is supported.
test-floor: wheel
	$(PYTHON) -m venv $(FLOOR_VENV)
	$(FLOOR_VENV)/bin/pip install --quiet torch==$(FLOOR_TORCH) torchvision torchdata numpy pillow pytest
	$(FLOOR_VENV)/bin/pip install --quiet --no-deps --force-reinstall dist/forebay-*.whl
	$(FLOOR_VENV)/bin/pytest tests/python/test_loader.py tests/python/test_errors.py tests/python/test_ops*.py \
		tests/python/test_datapipe_*.py tests/python/test_nodes.py

# On a machine with a GPU, from WHEEL and what $(PYTHON) has installed: torch, numpy, pillow and
# pytest, and DALI and torchvision for bench-gpu, of which PARTS=train,multicam,.. are run. No Rust
# toolchain.
unpacked:
	@test -f "$(WHEEL)" || { echo "WHEEL=$(WHEEL) must name a wheel; make wheel builds one in dist" >&2; exit 1; }
	rm -rf $(UNPACKED)
	$(PYTHON) -m pip install --quiet --no-deps --target $(UNPACKED) $(WHEEL)

test-gpu: unpacked
	FOREBAY_REQUIRE_GPU=1 $(WITH_UNPACKED) $(PYTHON) -m pytest -m gpu

bench-gpu: unpacked
	$(WITH_UNPACKED) $(PYTHON) benches/gpu.py --data $(DATA) --out benches/results/gpu.json $(if $(PARTS),--parts $(PARTS))

# The long cases at full size.
soak: build
	cargo test --release --workspace --quiet -- --include-ignored
	$(BIN)/pytest --soak

bench: build $(VENV)/.peers
	$(BIN)/forebay bench --data $(DATA) --compare $(PEERS) --recipe imagenet-train --out benches/results/imagenet-train.json
	$(BIN)/forebay bench --data $(DATA) --compare $(PEERS) --recipe imagenet-val --out benches/results/imagenet-val.json
	$(BIN)/forebay bench --data $(DATA) --compare $(PEERS) --recipe multicam --seconds 30 --out benches/results/multicam.json
	$(BIN)/python benches/readme.py --plot docs/rates.png

# Where one core's time goes per image (docs/performance.md); wants perf.
profile:
	$(PYTHON) benches/stages.py $(DATA)

# Every file of a folder with a manifest of verdicts, each decoded in a process that may crash.
corpus: build
	$(BIN)/python tests/corpus.py $(CORPUS)

# How far each transform is from torchvision v2's, on a folder of photos; writes docs/transforms.md.
parity: build
	MKL_CBWR=COMPATIBLE $(BIN)/python tests/parity.py $(DATA) --write docs/transforms.md

# What the pixels mean for a model, on a folder of photos; some minutes.
logits: build
	$(BIN)/python tests/logits.py $(DATA)

# The peers that a benchmark compares with; tests of those that are missing skip and say so.
$(VENV)/.peers: $(VENV)/.deps
	$(BIN)/pip install --quiet opencv-python-headless nvidia-dali-cuda130 spdl matplotlib
	touch $@

clean:
	rm -rf build dist target $(VENV) $(FLOOR_VENV)
