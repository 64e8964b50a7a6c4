# A thin wrapper around meson and scripts/. Everything it builds is below build/ and build-check/.
PREFIX ?= /usr/local
BUILD = build

.PHONY: all demo check check-all install format soak clean

all:
	@scripts/setup
	@scripts/build $(BUILD)

demo:
	@scripts/setup demo
	@scripts/build $(BUILD)
	@scripts/demo

check:
	@scripts/check

check-all:
	@scripts/check-all

install:
	@scripts/setup
	@scripts/build $(BUILD) --prefix "$(abspath $(PREFIX))"
	@meson install -C $(BUILD) --no-rebuild --quiet
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

format:
	@scripts/setup check
	@scripts/check-format --fix

soak:
	@scripts/setup
	@scripts/build $(BUILD)
	@if [ -x scripts/soak ]; then scripts/soak; else echo "no scripts/soak here" >&2; exit 1; fi

clean:
	rm -rf build build-*
