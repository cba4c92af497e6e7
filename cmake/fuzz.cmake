# SPDX-License-Identifier: Apache-2.0
#
# Fuzz targets: files with a function LLVMFuzzerTestOneInput().
#
# nagi_fuzz(NAME SOURCE LENGTH BYTES LIBRARIES LIBRARY... [SEEDS PATTERN...]): the program fuzz_NAME, whose inputs have up
# to BYTES bytes. With NAGI_FUZZ=ON libFuzzer makes inputs; with NAGI_FUZZ=SEEDS the program runs the files that it is
# given, and needs no clang. PATTERN: files that are inputs to begin with. The file `fuzz/targets` of the build directory
# lists all targets, for `make fuzz`: name, length, files.
add_custom_target(nagi_fuzz_targets)
if(NAGI_FUZZ)
  file(WRITE ${CMAKE_BINARY_DIR}/fuzz/targets "")
  if(NAGI_FUZZ STREQUAL "SEEDS")
    add_library(nagi_fuzz_main OBJECT ${NAGI_ROOT}/runtime/fuzz/run_files.cpp)
  else()
    add_library(nagi_fuzz_main INTERFACE)
    target_link_options(nagi_fuzz_main INTERFACE -fsanitize=fuzzer)
  endif()
endif()

function(nagi_fuzz name source)
  if(NOT NAGI_FUZZ)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 fuzz "" "LENGTH" "LIBRARIES;SEEDS")
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
  target_include_directories(fuzz_${name} PRIVATE ${NAGI_ROOT}/runtime)
  target_link_libraries(fuzz_${name} PRIVATE nagi_fuzz_main ${fuzz_LIBRARIES} nagi_warnings)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(nagi_fuzz_targets fuzz_${name})
  set(seeds "")
  if(fuzz_SEEDS)
    file(GLOB seeds CONFIGURE_DEPENDS ${fuzz_SEEDS})
  endif()
  add_test(NAME seeds_${name} COMMAND fuzz_${name} ${seeds})
  list(JOIN seeds " " seeds)
  file(APPEND ${CMAKE_BINARY_DIR}/fuzz/targets "${name} ${fuzz_LENGTH} ${seeds}\n")
endfunction()
