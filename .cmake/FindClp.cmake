# SPDX-License-Identifier: Apache-2.0
# Finds the linear programming solver Clp and defines the imported target Clp::Clp.
find_path(GPUSCHED_CLP_INCLUDE_DIR NAMES coin/ClpSimplex.hpp DOC "Folder of coin/ClpSimplex.hpp (Debian: coinor-libclp-dev)")
find_library(GPUSCHED_CLP_LIBRARY NAMES Clp)
find_library(GPUSCHED_CLP_COINUTILS_LIBRARY NAMES CoinUtils)
mark_as_advanced(GPUSCHED_CLP_INCLUDE_DIR GPUSCHED_CLP_LIBRARY GPUSCHED_CLP_COINUTILS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Clp
  REQUIRED_VARS GPUSCHED_CLP_LIBRARY GPUSCHED_CLP_COINUTILS_LIBRARY GPUSCHED_CLP_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Clp was not found (Debian and Ubuntu: apt-get install coinor-libclp-dev)")

if(Clp_FOUND AND NOT TARGET Clp::Clp)
  add_library(Clp::Clp INTERFACE IMPORTED)
  set_target_properties(
    Clp::Clp PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${GPUSCHED_CLP_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES "${GPUSCHED_CLP_LIBRARY};${GPUSCHED_CLP_COINUTILS_LIBRARY}")
endif()
