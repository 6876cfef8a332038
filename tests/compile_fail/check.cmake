# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=<file> -DFLAGS=<flags.cmake> -P check.cmake: see CMakeLists.txt in this folder.
# With -DPRINT=ON the lines in which the cause must stand are printed, too.
include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
file(STRINGS "${SOURCE}" _first LIMIT_COUNT 1)
if(NOT _first MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${SOURCE}: the first line must read '// expect: <regular expression>'")
endif()
set(_expected "${CMAKE_MATCH_1}")

file(READ "${SOURCE}" _text)
if(NOT _text MATCHES "GPUSCHED_CONTROL")
  message(FATAL_ERROR "${SOURCE}: it must have a variant that compiles with GPUSCHED_CONTROL defined")
endif()

# As people write programs: the mistake in a header of their own, which some source includes.
execute_process(COMMAND ${command} -fsyntax-only -x c++ -include "${headers}" -include "${SOURCE}" /dev/null
                RESULT_VARIABLE _code OUTPUT_VARIABLE _out ERROR_VARIABLE _out)
if(_code EQUAL 0)
  message(FATAL_ERROR "the file compiles, but must not")
endif()
# The cause must be where people look. How files include each other, GCC says before its message, one line per file.
string(REGEX REPLACE "^(In file included from [^\n]*\n| +from [^\n]*\n)+" "" _message "${_out}")
string(REGEX MATCH "^[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*" _first_lines "${_message}")
if(NOT _first_lines MATCHES "${_expected}")
  message(FATAL_ERROR "the file fails to compile, but '${_expected}' is not in the first nine lines after the chain of "
                      "included files:\n${_out}")
endif()
if(PRINT)
  message("${_first_lines}")
endif()
message(STATUS "fails to compile as expected: ${CMAKE_MATCH_0}")
