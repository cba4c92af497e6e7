# SPDX-License-Identifier: Apache-2.0
#
# NAGI_VERSION: the version in pyproject.toml, which all parts have.
set(pyproject ${CMAKE_CURRENT_LIST_DIR}/../pyproject.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pyproject})
file(STRINGS ${pyproject} NAGI_VERSION REGEX "^version = ")
string(REGEX REPLACE "^version = \"([0-9]+\\.[0-9]+\\.[0-9]+)\"$" "\\1" NAGI_VERSION "${NAGI_VERSION}")
