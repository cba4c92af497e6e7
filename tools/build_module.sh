#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build our TCP schemes as modules of a kernel: build_module.sh KERNEL_BUILD MODULES. KERNEL_BUILD has the headers of the
# kernel, as /lib/modules/RELEASE/build does; the modules are left in the directory MODULES.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ! -f $1/Makefile ]]; then
    echo "nagi: $1: no headers of a kernel; as root, install $(tools/install_packages.sh --kernel-headers) (of the distribution's" \
        "kernel), then give KERNEL_BUILD=/lib/modules/RELEASE/build, RELEASE being a directory that has them" >&2
    exit 2
fi
exec make --no-print-directory -f hosts/tcp/module/Makefile KERNEL_BUILD="$1" MODULES="$2"
