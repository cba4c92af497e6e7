#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run one level of tests: test.sh LEVEL [PYTEST OPTION...]. `make test-LEVEL` calls it.
#   native    C++ tests, by ctest
#   apart     Python tests without guests that do not depend on a clock
#   changed   tests of `apart` that call code which has changed since they last passed; the first time, all
#   virtual   guests in virtual time; a busy machine changes no result
#   realtime  sockets, namespaces and clocks of this machine; each test has a second try, as a busy machine may delay it
#   radio     GNU Radio's blocks, and runs over radio links
#   slow      tests that all other levels leave out
#   conformance  p4c's own tests on nagi-switch (SAMPLES=DIRECTORY of p4c's testdata; --only TEXT: only names with TEXT)
#   chaos     campaigns killed at random times, which must lose no run (CHAOS=100 kills, SEED=1)
set -euo pipefail
cd "$(dirname "$0")/.."
level=${1:?name a level: native apart changed virtual realtime radio slow conformance chaos}
shift
pytest=(.venv/bin/python -u -m pytest)
side_by_side=(-n 2 --dist loadfile) # the tests of a file share its fixtures
# Many tests that do not depend on a clock wait for programs, so three share two processors.
apart=(-n 3 --dist loadfile -m "not slow and not virtual and not realtime and not radio")
run_ctest() { ctest --output-on-failure -j 2 --test-dir "$1" | tail -n 5; }

case $level in
native)
    echo "== testing the native parts"
    run_ctest build
    ;;
apart)
    echo "== running tests that do not depend on a clock"
    tools/as_root "${pytest[@]}" "${apart[@]}" "$@"
    ;;
changed)
    # testmon records which Python functions each test calls, and selects tests by them. A changed file that is not Python
    # selects the folder `tests` nearest to the file.
    echo "== testing what has changed"
    mkdir -p build
    declare -A test_folders=()
    while read -r file; do
        folder=$(dirname "$file")
        while [[ $folder != . && ! -d $folder/tests ]]; do folder=$(dirname "$folder"); done
        if [[ -d $folder/tests && $folder != . ]]; then test_folders[$folder/tests]=1; fi
    done < <({ git diff --name-only HEAD && git ls-files --others --exclude-standard; } | grep -vE '\.(py|md)$')
    tools/as_root env TESTMON_DATAFILE=build/testmondata "${pytest[@]}" --testmon --testmon-forceselect \
        "${apart[@]}" "$@" || [[ $? -eq 5 ]] # 5: nothing is selected
    if [[ ${#test_folders[@]} -gt 0 ]]; then
        echo "== running tests of changed files that are not Python: ${!test_folders[*]}"
        tools/as_root "${pytest[@]}" "${apart[@]}" "${!test_folders[@]}" || [[ $? -eq 5 ]]
    fi
    ;;
virtual)
    # Guests need no root rights, so they are tested as an ordinary user. Root also tests the sandbox of guests of root.
    echo "== testing in virtual time, as an ordinary user"
    as_user=()
    if [[ $(id -u) -eq 0 ]]; then as_user=(tools/as_ordinary_user); fi
    "${as_user[@]}" "${pytest[@]}" "${side_by_side[@]}" -m "virtual and not slow and not radio" "$@"
    if [[ $(id -u) -eq 0 && $# -eq 0 ]]; then
        echo "== testing guests that root starts"
        "${pytest[@]}" -m virtual nagi/tests/test_virtual_sandbox.py nagi/plan/tests/test_command_files.py
    fi
    ;;
realtime)
    echo "== testing in real time"
    # Programs with real sockets mostly wait, so two tests run at the same time. Tests of the netns lab run one by one.
    tools/as_root "${pytest[@]}" "${side_by_side[@]}" -m "realtime and not slow and not radio" link-emulator p4 hosts
    tools/as_root "${pytest[@]}" -m "realtime and not slow and not radio" ansible captures reports nagi docs
    ;;
radio)
    echo "== testing the blocks of radios"
    run_ctest build/radio
    echo "== testing runs over radios"
    tools/as_root "${pytest[@]}" -m "radio and not slow" "$@"
    ;;
slow)
    # sudo removes these variables, which name archives and keys of other releases.
    releases=()
    for name in MIRROR KEYRING UBUNTU_MIRROR UBUNTU_KEYRING; do
        if [[ -n ${!name:-} ]]; then releases+=("$name=${!name}"); fi
    done
    tools/as_root env "${releases[@]}" "${pytest[@]}" -m slow "$@"
    ;;
conformance)
    if [[ -z ${SAMPLES:-} ]]; then
        echo "nagi: name the samples: SAMPLES=/path/of/p4c/testdata" >&2
        exit 2
    fi
    mkdir -p build
    PYTHONPATH=p4/tests .venv/bin/python -m stf.conformance --samples "$SAMPLES" "$@" \
        --work build/conformance --json build/conformance.json
    ;;
chaos)
    tools/as_root .venv/bin/python nagi/tests/chaos.py --blows "${CHAOS:-100}" --seed "${SEED:-1}" "$@"
    ;;
*)
    echo "nagi: there is no level $level of tests" >&2
    exit 2
    ;;
esac
