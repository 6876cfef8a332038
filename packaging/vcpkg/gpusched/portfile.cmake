# SPDX-License-Identifier: Apache-2.0
# An overlay port that builds this source tree: vcpkg install gpusched --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(_components core)
if("all" IN_LIST FEATURES)
  set(_components all)
endif()
vcpkg_check_features(
  OUT_FEATURE_OPTIONS _options
  FEATURES clp GPUSCHED_WITH_CLP
           clp GPUSCHED_WITH_CBC
           highs GPUSCHED_WITH_HIGHS)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DGPUSCHED_COMPONENTS=${_components} -DGPUSCHED_BUILD_TESTS=OFF -DGPUSCHED_BUILD_EXAMPLES=OFF
          -DGPUSCHED_BUILD_BENCHMARKS=OFF -DGPUSCHED_CCACHE=OFF ${_options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME gpusched CONFIG_PATH lib/cmake/gpusched)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
