# SPDX-License-Identifier: Apache-2.0
# cmake -DFLAGS=<flags.cmake> -P precompile.cmake: compiles headers.hpp of this folder for the other scripts.
include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
configure_file("${CMAKE_CURRENT_LIST_DIR}/headers.hpp" "${headers}" COPYONLY)
execute_process(COMMAND ${command} -x c++-header "${headers}" -o "${headers}.gch" COMMAND_ERROR_IS_FATAL ANY)
