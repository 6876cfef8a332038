# SPDX-License-Identifier: Apache-2.0
# The components: one library each, made of one or several folders of src/ and include/gpusched/.
#
# The two tables at the end of this file list the packages, and per component its folders, the components that it needs
# and its packages. CMakeLists.txt builds from them, GpuschedInstall.cmake installs from them.
include_guard()
include(CheckLinkerFlag)

check_linker_flag(CXX LINKER:-z,defs GPUSCHED_LINKER_DEFS)

# gpusched_package(<package> <target> <definition> <arguments of find_package>...)
#   <definition> is set if an optional package is used; "" for the others.
function(gpusched_package package target definition)
  set(_gpusched_target_${package} "${target}" PARENT_SCOPE)
  set(_gpusched_definition_${package} "${definition}" PARENT_SCOPE)
  set(_gpusched_find_${package} "${ARGN}" PARENT_SCOPE)
endfunction()

# gpusched_component(<component> FOLDERS <folder>... [NEEDS <component>...] [PUBLIC <package>...] [PRIVATE <package>...]
#                    [OPTIONAL <package>...])
#   PUBLIC packages appear in public headers. PRIVATE ones are headers that only the component's own sources include.
#   OPTIONAL ones are libraries that its sources use if they are found; users of the static library link them.
#   A component comes after those that it needs.
function(gpusched_component component)
  cmake_parse_arguments(PARSE_ARGV 1 _a "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE;OPTIONAL")
  list(APPEND gpusched_known_components ${component})
  set(gpusched_known_components "${gpusched_known_components}" PARENT_SCOPE)
  foreach(_field IN ITEMS FOLDERS NEEDS PUBLIC PRIVATE OPTIONAL)
    string(TOLOWER "${_field}" _lower)
    set(_gpusched_${_lower}_${component} "${_a_${_field}}" PARENT_SCOPE)
  endforeach()
endfunction()

# gpusched_choose_components(<wanted>...): sets gpusched_components to these and those that they need; "all" = every one.
function(gpusched_choose_components)
  set(_wanted "${ARGN}")
  if(_wanted STREQUAL "all")
    set(_wanted "${gpusched_known_components}")
  endif()
  foreach(_component IN LISTS _wanted)
    if(NOT _component IN_LIST gpusched_known_components)
      list(JOIN gpusched_known_components " " _known)
      message(FATAL_ERROR "GPUSCHED_COMPONENTS: unknown component '${_component}'; there are: ${_known}")
    endif()
  endforeach()
  set(_reversed "${gpusched_known_components}")
  list(REVERSE _reversed)
  set(_chosen "")
  foreach(_component IN LISTS _reversed)
    if(_component IN_LIST _wanted)
      list(PREPEND _chosen ${_component})
      list(APPEND _wanted ${_gpusched_needs_${_component}})
    endif()
  endforeach()
  set(gpusched_components "${_chosen}" PARENT_SCOPE)
endfunction()

# gpusched_find_packages(): looks for the packages of the chosen components only.
# Sets gpusched_packages to those that were found.
function(gpusched_find_packages)
  set(_found "")
  foreach(_component IN LISTS gpusched_components)
    foreach(_package IN LISTS _gpusched_public_${_component} _gpusched_private_${_component})
      find_package(${_gpusched_find_${_package}} REQUIRED)
      list(APPEND _found ${_package})
    endforeach()
    foreach(_package IN LISTS _gpusched_optional_${_component})
      string(TOUPPER "${_package}" _upper)
      if(GPUSCHED_WITH_${_upper})
        find_package(${_gpusched_find_${_package}})
        if(TARGET ${_gpusched_target_${_package}})
          list(APPEND _found ${_package})
        endif()
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES _found)
  set(gpusched_packages "${_found}" PARENT_SCOPE)
endfunction()

# gpusched_add_component(<component>): the library gpusched::<component>.
function(gpusched_add_component component)
  set(_target gpusched_${component})
  add_library(${_target})
  add_library(gpusched::${component} ALIAS ${_target})
  foreach(_folder IN LISTS _gpusched_folders_${component})
    file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${_folder}/*.cpp")
    target_sources(${_target} PRIVATE ${_sources})
    set_source_files_properties(${_sources} PROPERTIES UNITY_GROUP ${_folder})
    if(CMAKE_VERIFY_INTERFACE_HEADER_SETS) # compiles every header by itself: `.ci/run headers`
      file(GLOB_RECURSE _headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/gpusched/${_folder}/*.hpp")
      target_sources(${_target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${_headers})
    endif()
  endforeach()
  set_target_properties(
    ${_target}
    PROPERTIES EXPORT_NAME ${component}
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} # the version of the binary interface
               POSITION_INDEPENDENT_CODE ON
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               UNITY_BUILD ${GPUSCHED_UNITY_BUILD}
               UNITY_BUILD_MODE GROUP
               INSTALL_RPATH "$ORIGIN"
               DEFINE_SYMBOL "") # the static and the shared library compile alike
  gpusched_own_target(${_target})
  target_compile_features(${_target} PUBLIC cxx_std_20)
  target_include_directories(${_target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(${_target} PRIVATE "${PROJECT_SOURCE_DIR}/src") # private headers
  if(GPUSCHED_CHECKED)
    # Public: the assertions also stand in templates, which the user's code instantiates.
    target_compile_definitions(${_target} PUBLIC GPUSCHED_CHECKED=1)
  endif()
  target_link_libraries(${_target} PRIVATE ${CMAKE_DL_LIBS}) # drivers' libraries are opened at run time
  # A symbol that no needed component exports is an error here, not in a user's program.
  get_target_property(_type ${_target} TYPE)
  if(_type STREQUAL "SHARED_LIBRARY" AND GPUSCHED_LINKER_DEFS AND NOT GPUSCHED_SANITIZE)
    target_link_options(${_target} PRIVATE LINKER:-z,defs)
  endif()
  foreach(_needed IN LISTS _gpusched_needs_${component})
    target_link_libraries(${_target} PUBLIC gpusched_${_needed})
  endforeach()
  foreach(_package IN LISTS _gpusched_public_${component})
    target_link_libraries(${_target} PUBLIC ${_gpusched_target_${_package}})
  endforeach()
  foreach(_package IN LISTS _gpusched_private_${component})
    target_link_libraries(${_target} PRIVATE $<BUILD_INTERFACE:${_gpusched_target_${_package}}>)
  endforeach()
  foreach(_package IN LISTS _gpusched_optional_${component})
    if(_package IN_LIST gpusched_packages)
      target_compile_definitions(${_target} PRIVATE ${_gpusched_definition_${_package}})
      target_link_libraries(${_target} PRIVATE ${_gpusched_target_${_package}})
    endif()
  endforeach()
endfunction()

# ---- the packages ------------------------------------------------------------------------------------------
gpusched_package(threads Threads::Threads "" Threads)
gpusched_package(eigen Eigen3::Eigen "" Eigen3 NO_MODULE) # 3.4 or newer; Eigen 5 refuses to be found as 3.4
gpusched_package(boost Boost::headers "" Boost 1.74)
gpusched_package(nlohmann nlohmann_json::nlohmann_json "" nlohmann_json 3.11)
gpusched_package(csv gpusched::csv "" gpusched_csv)
gpusched_package(clp Clp::Clp GPUSCHED_HAS_CLP Clp)
gpusched_package(cbc Cbc::Cbc GPUSCHED_HAS_CBC Cbc)
gpusched_package(highs highs::highs GPUSCHED_HAS_HIGHS highs CONFIG QUIET)
gpusched_package(pugixml pugixml::pugixml GPUSCHED_HAS_PUGIXML pugixml 1.11 CONFIG QUIET)
gpusched_package(libyaml LibYaml::LibYaml GPUSCHED_HAS_LIBYAML LibYaml)

# ---- the components ----------------------------------------------------------------------------------------
gpusched_component(
  core
  FOLDERS core model topology verify fragmentation allocation consolidation preemption admission
  PUBLIC threads eigen boost)
gpusched_component(json FOLDERS json NEEDS core PRIVATE nlohmann OPTIONAL libyaml)
gpusched_component(io FOLDERS io NEEDS json PRIVATE csv OPTIONAL pugixml)
gpusched_component(milp FOLDERS milp NEEDS core OPTIONAL highs cbc clp)
gpusched_component(serving FOLDERS serving NEEDS json milp PRIVATE csv)
gpusched_component(control FOLDERS control NEEDS json)
gpusched_component(sim FOLDERS sim NEEDS control serving PRIVATE csv)
