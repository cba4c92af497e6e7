# SPDX-License-Identifier: Apache-2.0
#
# gcc for the guest kernel: `bash compile.sh DIRECTORY gcc ARGUMENTS`, as Kbuild calls it for each file. It halves the
# time of the build: what nearly each of the 700 files includes is parsed once, into DIRECTORY/common.h.gch; and less
# is optimized (-O1). Where that does not do, a file is compiled as Kbuild says.
set -u
common=$1/common.h
shift

# Files of the kernel proper, once the constants are there that its headers get from a compiler.
[[ $* == *" -D__KERNEL__ "* && $* == *" -DKBUILD_MODFILE="* && $* == *" -c "* && ${*: -1} != */arch/* &&
  -e include/generated/asm-offsets.h ]] || exec "$@"

# gcc takes a precompiled header that comes first. So what Kbuild defines for each file alone comes after it.
kbuild=("$@") command=() flags=() definitions=() output=
while (($# > 0)); do
  case $1 in
  -O2) command+=(-O1) flags+=(-O1) ;;
  -DKBUILD_*=* | -D__KBUILD_*=*) definitions+=("${1#-D}") ;;
  -include)
    [[ $2 == */compiler-version.h ]] && command+=(-include "$common") || command+=(-include "$2")
    shift
    ;;
  -o)
    output=$2 command+=(-o "$2")
    shift
    ;;
  -c | *.c | -Wp,-MMD,*) command+=("$1") ;;
  *) command+=("$1") flags+=("$1") ;;
  esac
  shift
done

if [[ ! -e $common.gch ]]; then
  exec {lock}>"$common.lock"
  flock $lock
  [[ -e $common.gch ]] || { "${flags[@]}" -x c-header "$common" -o "$common.part" && mv "$common.part" "$common.gch"; }
  exec {lock}>&-
fi

for definition in "${definitions[@]}"; do
  echo "#define ${definition%%=*} ${definition#*=}"
done >"$output.h"
"${command[@]}" -include "$output.h" 2>/dev/null || exec "${kbuild[@]}"
