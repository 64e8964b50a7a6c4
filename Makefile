# A thin wrapper around meson and scripts/. Everything it builds is below build/ and build-check/.
PREFIX ?= /usr/local
BUILD = build

.PHONY: all help demo check test check-change check-all install format figures figures-flow soak clean

all:
	@scripts/setup
	@scripts/build $(BUILD)
	@echo "built: $(BUILD)/tools/runnel"

help:
	@echo "make             builds into $(BUILD)/"
	@echo "make demo        shows what it can do"
	@echo "make check       builds and runs the tests; make test is the same"
	@echo "make check-change  after it, what CI runs besides: sanitizers over what has changed, planted bugs"
	@echo "make check-all   both compilers, sanitizers, models and stress too"
	@echo "make install     builds and installs below PREFIX ($(PREFIX)), or DESTDIR before it"
	@echo "make format      formats the C files"
	@echo "make figures     measures, and writes README's figures and the pictures in doc/: two minutes"
	@echo "make figures-flow  prints the figures of doc/flow.md for whole endpoints, on virtual hosts"
	@echo "make soak        runs everything that is drawn at random for long; SOAK_ONLY=kills: that part"
	@echo "make clean       removes what was built"

demo:
	@scripts/setup demo
	@RNL_TARGETS="tools/runnel examples/sort" scripts/build $(BUILD)
	@scripts/demo

check test:
	@scripts/check

check-change:
	@scripts/check-change

check-all:
	@scripts/check-all

install:
	@DESTDIR="$(DESTDIR)" scripts/install "$(abspath $(PREFIX))"

format:
	@scripts/setup check
	@scripts/check-format --fix

figures:
	@scripts/setup demo
	@RNL_TARGETS=tools/runnel scripts/build $(BUILD)
	@RUNNEL_BUILD="$(abspath $(BUILD))" scripts/figures

figures-flow:
	@scripts/setup
	@RNL_TARGETS="tools/runnel tests/vproc-flow.so" scripts/build $(BUILD)
	@scripts/figures-flow $(BUILD)

soak:
	@scripts/setup
	@scripts/build $(BUILD)
	@scripts/soak

clean:
	rm -rf build build-*
