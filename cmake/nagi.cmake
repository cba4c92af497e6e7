# SPDX-License-Identifier: Apache-2.0
#
# How all C++ of nagi is compiled, and what its CMakeLists.txt share.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
option(NAGI_WERROR "Treat warnings as errors" OFF)

get_filename_component(NAGI_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
# Programs must not depend on where they were built: their checksums are part of every run's id.
add_compile_options(-ffile-prefix-map=${NAGI_ROOT}=.)

# Lines are enough for backtraces and profiles. Where JSON is read, all of -g takes a third of the
# time to compile; CMAKE_BUILD_TYPE=Debug has it.
add_compile_options($<$<CONFIG:RelWithDebInfo>:-g1>)

add_library(nagi_warnings INTERFACE)
target_compile_options(
  nagi_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor
                          -Wold-style-cast $<$<BOOL:${NAGI_WERROR}>:-Werror>)

# nagi_main(FILE): reads a command line, once. To optimise all of that takes as long as to compile the rest; not to
# optimise it at all slows the whole program down, as the linker takes the templates that others use, too, from here.
# What moves frames is optimised throughout.
function(nagi_main file)
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# nagi_together(TARGET): compiles a target's files five at a time, so that the templates that all of
# them use (JSON's) are instantiated once. That saves a third of the time of the whole build.
# `make lint` compiles each file by itself.
option(NAGI_TOGETHER "Compile files that use the same templates together" ON)
function(nagi_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${NAGI_TOGETHER} UNITY_BUILD_BATCH_SIZE 5)
endfunction()

# nagi_test(SOURCE... LIBRARIES LIBRARY... [TOGETHER]): tests, which all become one program.
function(nagi_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "TOGETHER" "" "LIBRARIES")
  if(NAGI_TESTS)
    list(TRANSFORM test_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    if(test_TOGETHER)
      string(MAKE_C_IDENTIFIER ${CMAKE_CURRENT_BINARY_DIR} group)
      set_source_files_properties(${test_UNPARSED_ARGUMENTS} TARGET_DIRECTORY native_test
                                  PROPERTIES UNITY_GROUP ${group})
    endif()
    target_sources(native_test PRIVATE ${test_UNPARSED_ARGUMENTS})
    target_link_libraries(native_test PRIVATE ${test_LIBRARIES})
  endif()
endfunction()
