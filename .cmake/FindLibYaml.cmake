# SPDX-License-Identifier: Apache-2.0
# Finds the YAML parser libyaml and defines the imported target LibYaml::LibYaml.
find_path(GPUSCHED_LIBYAML_INCLUDE_DIR NAMES yaml.h DOC "Folder of yaml.h of libyaml (Debian: libyaml-dev)")
find_library(GPUSCHED_LIBYAML_LIBRARY NAMES yaml)
mark_as_advanced(GPUSCHED_LIBYAML_INCLUDE_DIR GPUSCHED_LIBYAML_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibYaml
  REQUIRED_VARS GPUSCHED_LIBYAML_LIBRARY GPUSCHED_LIBYAML_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "libyaml was not found (Debian and Ubuntu: apt-get install libyaml-dev)")

if(LibYaml_FOUND AND NOT TARGET LibYaml::LibYaml)
  add_library(LibYaml::LibYaml INTERFACE IMPORTED)
  set_target_properties(LibYaml::LibYaml PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${GPUSCHED_LIBYAML_INCLUDE_DIR}"
                                                    INTERFACE_LINK_LIBRARIES "${GPUSCHED_LIBYAML_LIBRARY}")
endif()
