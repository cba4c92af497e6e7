#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build nagi's TCP schemes as kernel modules: build_module.sh KERNEL_BUILD MODULES. KERNEL_BUILD is a directory with the
# headers of the kernel, such as /lib/modules/RELEASE/build. The modules are written to the directory MODULES.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ! -f $1/Makefile ]]; then
    echo "nagi: $1 has no kernel headers; as root, install $(tools/install_packages.sh --kernel-headers) (for the distribution's" \
        "kernel), then give KERNEL_BUILD=/lib/modules/RELEASE/build, where RELEASE is the release of this kernel" >&2
    exit 2
fi
exec make --no-print-directory -f hosts/tcp/module/Makefile KERNEL_BUILD="$1" MODULES="$2"
