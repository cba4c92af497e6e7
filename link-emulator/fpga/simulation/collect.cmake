# SPDX-License-Identifier: Apache-2.0
#
# cmake -DMADE=DIRECTORY -P collect.cmake
#
# Verilator decides how many files it writes to MADE. This script writes two files that include
# them: MADE/fast.cpp has the code that runs in each clock, and MADE/slow.cpp the code that runs
# once.
file(GLOB files RELATIVE ${MADE} ${MADE}/V*.cpp)
foreach(kind fast slow)
  set(mine ${files})
  if(kind STREQUAL fast)
    list(FILTER mine EXCLUDE REGEX "__Slow\\.cpp$")
  else()
    list(FILTER mine INCLUDE REGEX "__Slow\\.cpp$")
  endif()
  list(TRANSFORM mine REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN mine "" text)
  file(WRITE ${MADE}/${kind}.cpp "${text}")
endforeach()
