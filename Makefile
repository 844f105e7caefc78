# The daily commands. `make demo` and `make test` start on a fresh Debian 12 with git and make: what is missing is
# installed first.
#
#     make            build the library, the Python extension, tests and examples into build/
#     make demo       train a small convolutional network on handwritten digits, then evaluate its checkpoint from C++
#     make test       every test of C++ and Python, and lint; ends with "N passed, N failed, N skipped"
#     make sanitize   the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
#     make threads    the C++ tests and pairs of calls from two threads under ThreadSanitizer
#     make campaign   the long tests: sanitizers over everything, then tests marked `campaign`
#     make wheels     manylinux wheels into dist/, for every Python that is found; `make cuda-wheels` of vesta-cuda
#     make format     format every source file; `make lint` only checks
BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
export PYTHONPATH := $(CURDIR)/$(BUILD)/python
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

.PHONY: all build demo test sanitize threads campaign wheels cuda-wheels format lint clean
all: build

.venv/.installed-build: .ci/install_dependencies $(wildcard .ci/requirements-build.txt)
	@.ci/install_dependencies build
.venv/.installed-demo: .ci/install_dependencies $(wildcard .ci/requirements-build.txt .ci/requirements-demo.txt)
	@.ci/install_dependencies demo
.venv/.installed-test: .ci/install_dependencies $(wildcard .ci/requirements-*.txt)
	@.ci/install_dependencies test

# Configures once; then Ninja runs CMake by itself when a source file is added or CMakeLists.txt changes.
$(BUILD)/build.ninja: | .venv/.installed-build
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_ARGS) >$(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; rm -rf $(BUILD).log $@; exit 1; }
	@rm $(BUILD).log
	@echo "Building into $(BUILD)/: this takes minutes the first time, later only what has changed is built"

# Ninja shows in a terminal how far it is, in one line, and is silent where nobody watches.
build: $(BUILD)/build.ninja
	@quiet=; [ -t 1 ] || quiet=--quiet; cmake --build $(BUILD) -j $(JOBS) $(if $(TARGET),--target $(TARGET)) -- $$quiet

demo: TARGET = _C digits_evaluate
demo: .venv/.installed-demo build
	@$(PYTHON) examples/digits/train.py
	@$(BUILD)/bin/digits_evaluate

test: .venv/.installed-test build
	@$(PYTHON) .ci/test --build $(BUILD)

sanitize: .venv/.installed-test
	@$(MAKE) --no-print-directory build BUILD=build-sanitize \
	  CMAKE_ARGS="-DVESTA_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo"
	@$(PYTHON) .ci/test --build build-sanitize --sanitize

threads: .venv/.installed-test
	@$(MAKE) --no-print-directory build BUILD=build-thread TARGET="_C vesta_tests vesta_tests_threads" \
	  CMAKE_ARGS="-DVESTA_SANITIZE=thread -DCMAKE_BUILD_TYPE=RelWithDebInfo"
	@$(PYTHON) .ci/test --build build-thread --threads

campaign: sanitize threads build
	@$(PYTHON) .ci/test --build $(BUILD) --campaign

wheels cuda-wheels:
	@.ci/install_dependencies wheels
	@env -u PYTHONPATH $(PYTHON) .ci/wheels --jobs $(JOBS) $(if $(filter cuda-%,$@),--cuda)

format: .venv/.installed-test
	@.ci/lint --fix

lint: .venv/.installed-test $(BUILD)/build.ninja
	@.ci/lint

clean:
	rm -rf build build-sanitize build-thread build-wheel dist compile_commands.json
