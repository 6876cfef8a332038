# SPDX-License-Identifier: Apache-2.0
# Install rules, from the tables of GpuschedComponents.cmake: per component a library, an export set and a pkg-config
# file. CMake's install component "devel" holds the C++ library; the Python wheel takes "python" only.
include(CMakePackageConfigHelpers)

set(_gpusched_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gpusched")

# gpusched_install_targets(<name> <target>): the target in an export set of its own, read as gpusched-<name>.cmake.
function(gpusched_install_targets name target)
  install(
    TARGETS ${target}
    EXPORT gpusched-${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel NAMELINK_COMPONENT devel
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT devel)
  install(
    EXPORT gpusched-${name}
    NAMESPACE gpusched::
    DESTINATION ${_gpusched_config_dir}
    COMPONENT devel)
endfunction()

foreach(_component IN LISTS gpusched_components)
  gpusched_install_targets(${_component} gpusched_${_component})
endforeach()
gpusched_install_targets(gpusched gpusched)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/gpusched"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT devel
  FILES_MATCHING
  PATTERN "*.hpp")

# ---- find_package ------------------------------------------------------------------------------------------
# The table of components in gpuschedConfig.cmake. Compiled libraries hide the private packages from their users, and shared
# ones the optional packages, too.
get_target_property(_type gpusched_core TYPE)
set(GPUSCHED_CONFIG_TABLE "")
foreach(_component IN LISTS gpusched_components)
  set(_packages ${_gpusched_public_${_component}})
  if(_type STREQUAL "STATIC_LIBRARY")
    foreach(_package IN LISTS _gpusched_optional_${_component})
      if(_package IN_LIST gpusched_packages)
        list(APPEND _packages ${_package})
      endif()
    endforeach()
  endif()
  string(APPEND GPUSCHED_CONFIG_TABLE "set(_gpusched_needs_${_component} \"${_gpusched_needs_${_component}}\")\n"
                                      "set(_gpusched_packages_${_component} \"${_packages}\")\n")
endforeach()
foreach(_package IN LISTS gpusched_packages)
  string(APPEND GPUSCHED_CONFIG_TABLE "set(_gpusched_find_${_package} \"${_gpusched_find_${_package}}\")\n")
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

# ---- pkg-config: prefix-relative, so that the installed tree can be moved ----------------------------------------
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
set(_checked "")
if(GPUSCHED_CHECKED)
  set(_checked " -DGPUSCHED_CHECKED=1")
endif()

# Flags of the packages that have no pkg-config file everywhere; libraries that use others come first.
set(_pc_libraries_clp "-lClp -lCoinUtils")
set(_pc_libraries_cbc "-lCbcSolver -lCbc -lCgl -lOsiClp -lOsi -lClp -lCoinUtils")
set(_pc_libraries_highs "-lhighs")
set(_pc_libraries_pugixml "-lpugixml")
set(_pc_libraries_libyaml "-lyaml")
set(_pc_requires_eigen "eigen3 >= 3.4")
if(TARGET highs::highs)
  # It may lie where no linker looks by itself.
  get_target_property(_location highs::highs LOCATION)
  cmake_path(GET _location PARENT_PATH _folder)
  if(NOT _folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(_pc_libraries_highs "-L${_folder} -lhighs")
  endif()
endif()

# gpusched_install_pc(<name> <text behind the description> <requires> <cflags> <libs>)
function(gpusched_install_pc name what requires cflags libs)
  list(JOIN requires ", " GPUSCHED_PC_REQUIRES)
  set(GPUSCHED_PC_NAME "${name}")
  set(GPUSCHED_PC_WHAT "${what}")
  set(GPUSCHED_PC_CFLAGS "${cflags}")
  set(GPUSCHED_PC_LIBS "${libs}")
  configure_file("${PROJECT_SOURCE_DIR}/.cmake/gpusched.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(
    FILES "${PROJECT_BINARY_DIR}/${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT devel)
endfunction()

set(_all "")
foreach(_component IN LISTS gpusched_components)
  set(_requires "")
  foreach(_below IN LISTS _gpusched_needs_${_component})
    list(APPEND _requires gpusched-${_below})
  endforeach()
  foreach(_package IN LISTS _gpusched_public_${_component})
    list(APPEND _requires ${_pc_requires_${_package}})
  endforeach()
  set(_libs " -L\${libdir} -lgpusched_${_component}")
  if(_type STREQUAL "STATIC_LIBRARY")
    foreach(_package IN LISTS _gpusched_optional_${_component})
      if(_package IN_LIST gpusched_packages)
        string(APPEND _libs " ${_pc_libraries_${_package}}")
      endif()
    endforeach()
  endif()
  gpusched_install_pc(gpusched-${_component} "the component ${_component}" "${_requires}" "${_checked}" "${_libs}")
  list(PREPEND _all gpusched-${_component})
endforeach()
gpusched_install_pc(gpusched "all components" "${_all}" "" "")
