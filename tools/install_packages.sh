#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Install the missing system packages of lists: install_packages.sh LIST...
# Each LIST is a file tools/packages/LIST.txt. Without root and sudo, print the missing packages, and exit with 2.
# Options, which install nothing: --list LIST... prints the packages, --kernel-headers the package with the headers of the
# distribution's kernel. --is-ubuntu succeeds on Ubuntu.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# shellcheck disable=SC1090 # os-release is no script of ours
is_ubuntu() (. "${OS_RELEASE:-/etc/os-release}" && [[ " ${ID:-} ${ID_LIKE:-} " == *" ubuntu "* ]])

# Headers of the distribution's own kernel: Debian names them by architecture.
kernel_headers() { is_ubuntu && echo linux-headers-generic || echo "linux-headers-$(dpkg --print-architecture)"; }

# The package with the runtime of the installed release of clang.
clang_runtime() { echo "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"; }

list_packages() {
    local list
    for list in "$@"; do
        if [[ $list == browser ]] && is_ubuntu; then continue; fi
        sed 's/#.*//' "$here/packages/$list.txt"
    done | tr -s ' \n' '\n' | sort -u | while read -r package; do
        case $package in
        linux-headers) kernel_headers ;;
        libclang-rt) clang_runtime ;;
        *) echo "$package" ;;
        esac
    done
}

case ${1:-} in
--list) shift; list_packages "$@" | xargs; exit ;;
--kernel-headers) kernel_headers; exit ;;
--is-ubuntu) is_ubuntu; exit ;;
esac
missing=()
for package in $(list_packages "$@"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then exit; fi
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "nagi: as root, install: ${missing[*]}"
        exit 2
    fi
    exec sudo -E "$0" "$@"
fi

echo "== installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Debian starts and enables daemons when it installs them. The tests need the program sshd, but no running daemon. So a
# policy forbids to start ssh while packages are installed, unless the machine already has a policy. Then ssh is disabled.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT INT TERM
    # shellcheck disable=SC2016 # the policy expands $*
    printf '#!/bin/sh\ncase " $* " in *" ssh "*) exit 101;; esac\n' >"$policy"
    chmod 0755 "$policy"
fi
apt-get update -q -o=Dpkg::Use-Pty=0 | tail -n 1
apt-get install -q -y -o=Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" | grep -E '^(Setting up|E:)'
if [[ " ${missing[*]} " == *" openssh-server "* ]]; then systemctl --quiet disable ssh; fi
