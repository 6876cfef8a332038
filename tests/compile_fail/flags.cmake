# SPDX-License-Identifier: Apache-2.0
# Sets `command`: the compiler with the flags of an ordinary user, from what CMakeLists.txt wrote to FLAGS.
include("${FLAGS}")
set(command "${compiler}" -std=c++20)
foreach(_include IN LISTS includes)
  if(NOT _include STREQUAL "/usr/include")
    list(APPEND command "-I${_include}")
  endif()
endforeach()
