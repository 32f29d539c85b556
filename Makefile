# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A thin front for meson: "make help" lists the targets.

BUILD := build
PREFIX ?= /usr/local
MESONFLAGS ?=
DESTDIR ?=
DEMO := tools/demo/kdbus-demo
RUN_SESSION := tools/run-session/kdbus-run-session

.PHONY: all
all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup --prefix=$(PREFIX) $(MESONFLAGS) $(BUILD)

.PHONY: help
help: ## list the targets
	@echo 'make                    build into $(BUILD)/, nothing else'
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' Makefile | \
		while read -r name what; do printf 'make %-18s %s\n' "$$name" "$$what"; done

.PHONY: setup
setup: ## install the packages that a build needs, if any are missing
	@tools/setup/install build

.PHONY: demo
demo: ## install, build, show two programs talk, measure kdbus next to its peers (2 minutes)
	@tools/setup/install build demo
	@[ -e $(BUILD)/build.ninja ] || $(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) $(DEMO) $(DEMO)-glib $(RUN_SESSION) daemon/kdbusd bench/kdbus-bench
	@KDBUSD=$(BUILD)/daemon/kdbusd $(BUILD)/$(DEMO)
	@PATH=$(BUILD)/daemon:$$PATH $(BUILD)/$(RUN_SESSION) -- $(BUILD)/$(DEMO)-glib
	@KDBUSD=$(BUILD)/daemon/kdbusd $(BUILD)/bench/kdbus-bench tour --output $(BUILD)/numbers

.PHONY: check
check: ## install what the tests need, run all tests
	@tools/setup/install build demo check
	@tests/run

.PHONY: check-debug-kernel
check-debug-kernel: ## run the tests of the module on a kernel that looks for bugs (an hour)
	@tools/setup/install build check debug-kernel
	@[ -e $(BUILD)/build.ninja ] || $(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) vm-programs
	@tests/vm/check-debug-kernel $(BUILD)

.PHONY: module
module: ## build kdbus.ko into build/; KDIR names the kernel headers, default the running kernel's
	@module/build $(KDIR)

.PHONY: dkms
dkms: ## lay out the source of the module for DKMS, in build/dkms/
	@module/dkms

.PHONY: install
install: ## install what is built; PREFIX (default /usr/local) and DESTDIR are honoured
	@[ -e $(BUILD)/build.ninja ] || { echo 'nothing built yet; run: make' >&2; exit 1; }
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build build-asan build-tsan build-clang
