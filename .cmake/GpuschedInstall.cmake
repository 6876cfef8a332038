# Install rules. Component "devel" holds the C++ library; the Python wheel takes component "python" only.
include(CMakePackageConfigHelpers)

set(_gpusched_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gpusched")

install(
  TARGETS gpusched gpusched_header_only
  EXPORT gpuschedTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel NAMELINK_COMPONENT devel
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT devel)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/gpusched"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT devel
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.ipp")
install(
  EXPORT gpuschedTargets
  NAMESPACE gpusched::
  DESTINATION ${_gpusched_config_dir}
  COMPONENT devel)

# Only those who link the static library need the libraries behind it.
get_target_property(_gpusched_type gpusched TYPE)
foreach(_solver IN ITEMS CLP CBC HIGHS PUGIXML LIBYAML)
  set(GPUSCHED_NEEDS_${_solver} OFF)
  set(GPUSCHED_HAS_${_solver} OFF)
endforeach()
set(_solvers "")
if(Clp_FOUND)
  list(APPEND _solvers CLP)
endif()
if(Cbc_FOUND)
  list(APPEND _solvers CBC)
endif()
if(TARGET highs::highs)
  list(APPEND _solvers HIGHS)
endif()
if(TARGET pugixml::pugixml)
  list(APPEND _solvers PUGIXML)
endif()
if(LibYaml_FOUND)
  list(APPEND _solvers LIBYAML)
endif()
foreach(_solver IN LISTS _solvers)
  set(GPUSCHED_HAS_${_solver} ON)
  if(_gpusched_type STREQUAL "STATIC_LIBRARY")
    set(GPUSCHED_NEEDS_${_solver} ON)
  endif()
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/.cmake/gpuschedConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/gpuschedConfig.cmake" INSTALL_DESTINATION ${_gpusched_config_dir})
# Before 1.0 a minor version may break its callers, hence SameMinorVersion.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gpuschedConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/gpuschedConfig.cmake" "${PROJECT_BINARY_DIR}/gpuschedConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/.cmake/Findgpusched_csv.cmake" "${PROJECT_SOURCE_DIR}/.cmake/FindClp.cmake"
        "${PROJECT_SOURCE_DIR}/.cmake/FindCbc.cmake" "${PROJECT_SOURCE_DIR}/.cmake/FindLibYaml.cmake"
  DESTINATION ${_gpusched_config_dir}
  COMPONENT devel)

# pkg-config: prefix-relative, so that the installed tree can be moved.
foreach(_dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${_dir}}")
    set(GPUSCHED_PC_${_dir} "${CMAKE_INSTALL_${_dir}}")
  else()
    set(GPUSCHED_PC_${_dir} "\${prefix}/${CMAKE_INSTALL_${_dir}}")
  endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(GPUSCHED_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH _up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" _up "${_up}")
  set(GPUSCHED_PC_PREFIX "\${pcfiledir}/${_up}")
endif()
set(GPUSCHED_PC_CSV_INCLUDE_DIR "${GPUSCHED_CSV_INCLUDE_DIR}")
set(GPUSCHED_PC_DEFINES "")
if(GPUSCHED_CHECKED)
  set(GPUSCHED_PC_DEFINES " -DGPUSCHED_CHECKED=1")
endif()
set(GPUSCHED_PC_LIBS "")
set(GPUSCHED_PC_HEADER_ONLY_DEFINES "${GPUSCHED_PC_DEFINES}")
set(GPUSCHED_PC_HEADER_ONLY_LIBS "")
# Those who use others come first.
set(_libraries_CLP "-lClp -lCoinUtils")
set(_libraries_CBC "-lCbcSolver -lCbc -lCgl -lOsiClp -lOsi -lClp -lCoinUtils")
set(_libraries_HIGHS "-lhighs")
set(_libraries_PUGIXML "-lpugixml")
set(_libraries_LIBYAML "-lyaml")
set(_include_CLP "${GPUSCHED_CLP_INCLUDE_DIR}")
set(_include_CBC "${GPUSCHED_CBC_INCLUDE_DIR}")
set(_include_LIBYAML "${GPUSCHED_LIBYAML_INCLUDE_DIR}")
set(_include_HIGHS "")
set(_include_PUGIXML "")
if(TARGET pugixml::pugixml)
  get_target_property(_include_PUGIXML pugixml::pugixml INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT _include_PUGIXML)
    set(_include_PUGIXML "")
  endif()
endif()
if(TARGET highs::highs)
  get_target_property(_include_HIGHS highs::highs INTERFACE_INCLUDE_DIRECTORIES)
  # It may lie where no linker looks by itself.
  get_target_property(_location highs::highs LOCATION)
  cmake_path(GET _location PARENT_PATH _folder)
  if(NOT _folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(_libraries_HIGHS "-L${_folder} -lhighs")
  endif()
endif()
foreach(_solver IN ITEMS HIGHS CBC CLP PUGIXML LIBYAML)
  if(GPUSCHED_NEEDS_${_solver})
    string(APPEND GPUSCHED_PC_LIBS " ${_libraries_${_solver}}")
  endif()
  if(GPUSCHED_HAS_${_solver})
    string(APPEND GPUSCHED_PC_HEADER_ONLY_DEFINES " -DGPUSCHED_HAS_${_solver}")
    foreach(_folder IN LISTS _include_${_solver})
      string(APPEND GPUSCHED_PC_HEADER_ONLY_DEFINES " -I${_folder}")
    endforeach()
    string(APPEND GPUSCHED_PC_HEADER_ONLY_LIBS " ${_libraries_${_solver}}")
  endif()
endforeach()
foreach(_pc IN ITEMS gpusched gpusched-header-only)
  configure_file("${PROJECT_SOURCE_DIR}/.cmake/${_pc}.pc.in" "${PROJECT_BINARY_DIR}/${_pc}.pc" @ONLY)
  install(
    FILES "${PROJECT_BINARY_DIR}/${_pc}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT devel)
endforeach()
