# The commands of a user and of CI. On a fresh Debian machine each installs what it needs first.
BUILD_PACKAGES := g++ pkgconf cmake ninja-build ccache libfmt-dev libspdlog-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev zlib1g-dev libssl-dev libpng-dev libjpeg-dev libprotobuf-dev protobuf-compiler libonnx-dev llvm-19-dev libvulkan-dev spirv-headers spirv-tools
PYTHON_PACKAGES := python3-venv python3-dev libzstd-dev
MPI_PACKAGES := libopenmpi-dev openmpi-bin libmpich-dev mpich
DATA_PACKAGES := dataset-fashion-mnist
TEST_PACKAGES := $(DATA_PACKAGES) $(MPI_PACKAGES) patch libonnx-testdata libgtest-dev libgmock-dev clang-format-19 mesa-vulkan-drivers vulkan-validationlayers
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: mpi test-mpi python python-environment test-python test-torch wheel build install test demo bench test-exchange test-pages test-vulkan test-asan test-tsan deps format clean

# The command and the library alone; tests and examples are built by `make test`.
build:
	@$(call need,$(BUILD_PACKAGES))
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target pantala_shipped

# The plug-ins for both MPIs of Debian; whatever is installed is found by `make build`, too (docs/cluster.md).
mpi:
	@$(call need,$(BUILD_PACKAGES) $(MPI_PACKAGES))
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target pantala_shipped

# All that `make test` runs of training on several ranks, with more ranks.
test-mpi: deps
	cmake --preset release -DPANTALA_TESTS=ON
	cmake --build --preset release -j $(JOBS) --target pantala pantala_mpi_plugins rank_program test_distributed
	PANTALA_MPI_TESTS=all build/release/bin/test_distributed

install: build
	cmake --install build/release --prefix $(PREFIX)

test: deps
	cmake --preset release -DPANTALA_TESTS=ON
	cmake --build --preset release -j $(JOBS)
	@cat build/release/exchange.txt
	@echo "The Python package has tests of its own: make test-python, and make test-torch for what needs torch."
	ctest --preset release -j $(JOBS)

# Files exchanged with Python packages, which are put into an environment below build/. `make test` runs these tests too from then on.
EXCHANGE := $(CURDIR)/build/exchange
test-exchange: deps
	@$(call need,python3-venv)
	test -x $(EXCHANGE)/bin/python || python3 -m venv $(EXCHANGE)
	$(EXCHANGE)/bin/pip install --quiet numpy ml_dtypes safetensors onnxruntime tensorboard
	cmake --preset release -DPANTALA_TESTS=ON -DPANTALA_SAFETENSORS_PYTHON=$(EXCHANGE)/bin/python -DPANTALA_ONNXRUNTIME_PYTHON=$(EXCHANGE)/bin/python -DPANTALA_TENSORBOARD_PYTHON=$(EXCHANGE)/bin/python
	cmake --build --preset release -j $(JOBS) --target copy_weights write_exported_models write_sample_run
	ctest --preset release -L exchange

# The Python package in an environment below build/, one for each version of Python, and its tests there; `test-torch` puts torch and its kin into it
# before, so that what needs them runs, too.
PYTHON ?= python3
PYTHON_VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
PYTHON_ENVIRONMENT = $(CURDIR)/build/python$(PYTHON_VERSION)
python: python-environment
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PYTHON_ENVIRONMENT)/bin/pip install .

python-environment:
	@$(call need,$(BUILD_PACKAGES) $(PYTHON_PACKAGES))
	test -x $(PYTHON_ENVIRONMENT)/bin/python || $(PYTHON) -m venv $(PYTHON_ENVIRONMENT)

test-python: python
	@$(call need,$(DATA_PACKAGES))
	$(PYTHON_ENVIRONMENT)/bin/pip install --quiet pytest mypy pandas nbconvert ipykernel
	$(PYTHON_ENVIRONMENT)/bin/python -m pytest -rs

test-torch: python-environment
	$(PYTHON_ENVIRONMENT)/bin/pip install --quiet torch torchvision transformers onnx onnxscript
	$(MAKE) test-python PYTHON=$(PYTHON)

# One file for this machine's Python (from 3.12 on for all newer ones), in build/wheels.
wheel: python-environment
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PYTHON_ENVIRONMENT)/bin/pip wheel --no-deps --wheel-dir build/wheels .

# The pages that `pantala explain --html` writes, clicked through in headless Chromium; pictures of them are in build/pages.
test-pages: build
	@$(call need,chromium)
	cmake -DPANTALA=build/release/bin/pantala -DOUT=build/pages -P tests/pages/check_pages.cmake

test-asan: deps
	cmake --preset asan -DPANTALA_TESTS=ON
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

# Everything that there is on the first Vulkan device of this machine, software or not (`make test` runs a part of it), and once more with the
# validation layers, which must have nothing to say.
test-vulkan: deps
	cmake --preset release -DPANTALA_TESTS=ON
	cmake --build --preset release -j $(JOBS) --target pantala test_vulkan
	PANTALA_VULKAN_TESTS=all build/release/bin/test_vulkan
	cmake -DTEST=build/release/bin/test_vulkan -P tests/vulkan/validate.cmake

# What runs on several threads: pool, devices, code and plan caches, sessions. Generated code and LLVM are
# not instrumented.
test-tsan: deps
	cmake --preset tsan -DPANTALA_TESTS=ON
	cmake --build --preset tsan -j $(JOBS) --target test_unit
	ctest --preset tsan -j $(JOBS)

# `make demo DEVICE=vulkan` trains on the first GPU, DEVICE=vulkan:0 on a Vulkan device that is named, software or not; other devices than the CPU train one
# epoch, or EPOCHS of them.
DEVICE ?= cpu
EPOCHS ?= $(if $(filter cpu,$(DEVICE)),5,1)
demo: build
	@$(call need,$(DATA_PACKAGES))
	build/release/bin/pantala train examples/fashion_mnist.toml --device $(DEVICE) --set epochs=$(EPOCHS) --out runs/demo --restart

# Ours and the peers in turns, all workloads, training and inference; about an hour. BENCH_OPTIONS="lenet64 --peers torch" for less.
PEERS := $(CURDIR)/build/peers
bench: build
	@$(call need,python3-venv)
	test -x $(PEERS)/bin/python || python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet $$(python3 bench/compare.py --packages)
	python3 bench/compare.py --venv $(PEERS) $(BENCH_OPTIONS)

# need,PACKAGES: installs the Debian packages that are missing; quiet and fast when there is nothing to do.
define need
missing=""; for p in $(1); do \
  dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
if [ -n "$$missing" ]; then echo "installing:$$missing"; \
  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing; fi
endef

# All that building and testing needs.
deps:
	@$(call need,$(BUILD_PACKAGES) $(TEST_PACKAGES))

format:
	@$(call need,clang-format-19)
	git ls-files '*.h' '*.cpp' | xargs clang-format-19 -i

clean:
	rm -rf build
