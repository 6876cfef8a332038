# SPDX-License-Identifier: Apache-2.0
# Finds the MILP solver CBC and defines the imported target Cbc::Cbc.
find_path(GPUSCHED_CBC_INCLUDE_DIR NAMES CbcSolver.hpp PATH_SUFFIXES coin coin-or DOC "Folder of CbcSolver.hpp (Debian: coinor-libcbc-dev)")
set(_gpusched_cbc_libraries "")
foreach(_name IN ITEMS CbcSolver Cbc Cgl OsiClp Osi Clp CoinUtils)
  string(TOUPPER "${_name}" _upper)
  find_library(GPUSCHED_CBC_${_upper}_LIBRARY NAMES ${_name})
  mark_as_advanced(GPUSCHED_CBC_${_upper}_LIBRARY)
  list(APPEND _gpusched_cbc_libraries GPUSCHED_CBC_${_upper}_LIBRARY)
endforeach()
mark_as_advanced(GPUSCHED_CBC_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Cbc
  REQUIRED_VARS GPUSCHED_CBC_INCLUDE_DIR ${_gpusched_cbc_libraries}
  REASON_FAILURE_MESSAGE "CBC was not found (Debian and Ubuntu: apt-get install coinor-libcbc-dev)")

if(Cbc_FOUND AND NOT TARGET Cbc::Cbc)
  set(_gpusched_cbc_paths "")
  foreach(_library IN LISTS _gpusched_cbc_libraries)
    list(APPEND _gpusched_cbc_paths "${${_library}}")
  endforeach()
  add_library(Cbc::Cbc INTERFACE IMPORTED)
  set_target_properties(Cbc::Cbc PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${GPUSCHED_CBC_INCLUDE_DIR}"
                                            INTERFACE_LINK_LIBRARIES "${_gpusched_cbc_paths}")
endif()
