# SPDX-License-Identifier: Apache-2.0
# Finds the header csv.h of fast-cpp-csv-parser and defines the imported target gpusched::csv.
# Several libraries install a file of that name, so its text is looked at as well.
function(_gpusched_csv_check result candidate)
  if(IS_DIRECTORY "${candidate}")
    string(APPEND candidate "/csv.h")
  endif()
  if(EXISTS "${candidate}")
    file(STRINGS "${candidate}" _lines REGEX "class CSVReader" LIMIT_COUNT 1)
    if(_lines)
      return()
    endif()
  endif()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

find_path(
  GPUSCHED_CSV_INCLUDE_DIR
  NAMES csv.h
  PATH_SUFFIXES libfccp fast-cpp-csv-parser fast_cpp_csv_parser
  VALIDATOR _gpusched_csv_check
  DOC "Folder of csv.h of fast-cpp-csv-parser (Debian: libfccp-dev)")
mark_as_advanced(GPUSCHED_CSV_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  gpusched_csv
  REQUIRED_VARS GPUSCHED_CSV_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "csv.h of fast-cpp-csv-parser was not found (Debian and Ubuntu: apt-get install libfccp-dev)")

if(gpusched_csv_FOUND AND NOT TARGET gpusched::csv)
  add_library(gpusched::csv INTERFACE IMPORTED)
  set_target_properties(gpusched::csv PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${GPUSCHED_CSV_INCLUDE_DIR}")
endif()
