# SPDX-License-Identifier: Apache-2.0
#
# eBPF programs, compiled by clang.

# Kernel headers are found by architecture, which clang does not look for when it compiles to eBPF.
set(NAGI_BPF_FLAGS
    --target=bpf -mcpu=v3 -O2 -g -Wall -Wextra $<$<BOOL:${NAGI_WERROR}>:-Werror>
    -I${CMAKE_SOURCE_DIR}/runtime -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.
    -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
set(NAGI_EMBED ${CMAKE_CURRENT_LIST_DIR}/embed.cmake)

# nagi_bpf_object(OBJECT SOURCE FLAG...): compiles a source to an object file, a path.
function(nagi_bpf_object object source)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${NAGI_CLANG} ${NAGI_BPF_FLAGS} ${ARGN} -MMD -MF ${object}.d -MT ${object} -c
            ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "Building eBPF object ${source}"
    VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# nagi_embed_bpf(TARGET NAME...): compiles NAME.bpf.c and gives the target a header NAME.bpf.hpp, in
# which nagi::bpf::NAME are the bytes of the object. bpftool would make more of it, but
# distributions that come from Ubuntu have no package of that name.
function(nagi_embed_bpf target)
  foreach(name ${ARGN})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
    set(header ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.hpp)
    nagi_bpf_object(${object} ${name}.bpf.c)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -D OBJECT=${object} -D NAME=${name} -D HEADER=${header} -P
              ${NAGI_EMBED}
      DEPENDS ${object} ${NAGI_EMBED}
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
