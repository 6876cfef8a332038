# The components: one library each, of one or several rooms (folders of include/gpusched).
#
# The two tables at the end of this file say everything: which packages there are, and per component its rooms, the
# components below it and its packages. CMakeLists.txt builds from them, GpuschedInstall.cmake installs from them.
include_guard()
include(CheckLinkerFlag)

check_linker_flag(CXX LINKER:-z,defs GPUSCHED_LINKER_DEFS)

# gpusched_package(<package> <target> <definition> <arguments of find_package>...)
#   <definition> is set where an optional package is used; "" for the others.
function(gpusched_package package target definition)
  set(_gpusched_target_${package} "${target}" PARENT_SCOPE)
  set(_gpusched_definition_${package} "${definition}" PARENT_SCOPE)
  set(_gpusched_find_${package} "${ARGN}" PARENT_SCOPE)
endfunction()

# gpusched_component(<component> ROOMS <room>... [NEEDS <component>...] [PUBLIC <package>...] [PRIVATE <package>...]
#                    [OPTIONAL <package>...])
#   PUBLIC packages stand in public headers. PRIVATE ones are headers that only the component's own sources include.
#   OPTIONAL ones are libraries that its sources use where they are found; users of the static library link them.
#   A component stands below (after) those that it needs.
function(gpusched_component component)
  cmake_parse_arguments(PARSE_ARGV 1 _a "" "" "ROOMS;NEEDS;PUBLIC;PRIVATE;OPTIONAL")
  list(APPEND gpusched_known_components ${component})
  set(gpusched_known_components "${gpusched_known_components}" PARENT_SCOPE)
  foreach(_field IN ITEMS ROOMS NEEDS PUBLIC PRIVATE OPTIONAL)
    string(TOLOWER "${_field}" _lower)
    set(_gpusched_${_lower}_${component} "${_a_${_field}}" PARENT_SCOPE)
  endforeach()
endfunction()

# gpusched_choose_components(<wanted>...): sets gpusched_components to these and those below them; "all" = every one.
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

# gpusched_find_packages(): looks for what the chosen components need, and for nothing else.
# Sets gpusched_packages to what was found.
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

# gpusched_check_room(<room>): src/<room>.cpp includes exactly the files include/gpusched/<room>/impl/*.ipp. A forgotten
# file would otherwise show itself as an undefined symbol in some user's program.
function(gpusched_check_room room)
  file(GLOB _bodies CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
       "${PROJECT_SOURCE_DIR}/include/gpusched/${room}/impl/*.ipp")
  file(STRINGS "${PROJECT_SOURCE_DIR}/src/${room}.cpp" _lines REGEX "^#include <.*\\.ipp>$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}.cpp")
  set(_included "")
  foreach(_line IN LISTS _lines)
    string(REGEX REPLACE "^#include <(.*)>$" "\\1" _file "${_line}")
    list(APPEND _included "${_file}")
  endforeach()
  foreach(_file IN LISTS _bodies)
    if(NOT _file IN_LIST _included)
      message(FATAL_ERROR "src/${room}.cpp does not include <${_file}>")
    endif()
  endforeach()
  foreach(_file IN LISTS _included)
    if(NOT _file IN_LIST _bodies)
      message(FATAL_ERROR "src/${room}.cpp includes <${_file}>, which is not a body of ${room}/")
    endif()
  endforeach()
endfunction()

# gpusched_add_component(<component>): the library gpusched::<component>.
function(gpusched_add_component component)
  set(_target gpusched_${component})
  add_library(${_target})
  add_library(gpusched::${component} ALIAS ${_target})
  foreach(_room IN LISTS _gpusched_rooms_${component})
    gpusched_check_room(${_room})
    target_sources(${_target} PRIVATE "${PROJECT_SOURCE_DIR}/src/${_room}.cpp")
  endforeach()
  set_target_properties(
    ${_target}
    PROPERTIES EXPORT_NAME ${component}
               VERSION ${PROJECT_VERSION}
               SOVERSION ${_gpusched_abi} # of the inline namespace, too
               POSITION_INDEPENDENT_CODE ON
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               INSTALL_RPATH "$ORIGIN"
               DEFINE_SYMBOL "") # the static and the shared library compile alike
  gpusched_own_target(${_target})
  gpusched_use_headers(${_target} PUBLIC)
  target_link_libraries(${_target} PRIVATE ${CMAKE_DL_LIBS}) # drivers' libraries are opened at run time
  # A symbol that a component below does not export is an error here, not in some user's program.
  get_target_property(_type ${_target} TYPE)
  if(_type STREQUAL "SHARED_LIBRARY" AND GPUSCHED_LINKER_DEFS AND NOT GPUSCHED_SANITIZE)
    target_link_options(${_target} PRIVATE LINKER:-z,defs)
  endif()
  foreach(_below IN LISTS _gpusched_needs_${component})
    target_link_libraries(${_target} PUBLIC gpusched_${_below})
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

# gpusched_use_headers(<target> PUBLIC|INTERFACE): the folder of the headers, and how they are compiled.
function(gpusched_use_headers target scope)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(GPUSCHED_CHECKED)
    # Public: the assertions also sit in templates, which the user's code instantiates.
    target_compile_definitions(${target} ${scope} GPUSCHED_CHECKED=1)
  endif()
endfunction()

# gpusched_add_header_only(): gpusched::header_only, with the packages of all chosen components. The user's code calls
# solvers and parsers by itself; in the installed package gpuschedConfig.cmake adds those that are found there.
function(gpusched_add_header_only)
  add_library(gpusched_header_only INTERFACE)
  add_library(gpusched::header_only ALIAS gpusched_header_only)
  set_target_properties(gpusched_header_only PROPERTIES EXPORT_NAME header_only)
  target_compile_definitions(gpusched_header_only INTERFACE GPUSCHED_HEADER_ONLY)
  gpusched_use_headers(gpusched_header_only INTERFACE)
  target_link_libraries(gpusched_header_only INTERFACE ${CMAKE_DL_LIBS})
  foreach(_package IN LISTS gpusched_packages)
    set(_definition "${_gpusched_definition_${_package}}")
    if(_definition)
      target_compile_definitions(gpusched_header_only INTERFACE $<BUILD_INTERFACE:${_definition}>)
      target_link_libraries(gpusched_header_only INTERFACE $<BUILD_INTERFACE:${_gpusched_target_${_package}}>)
    else()
      target_link_libraries(gpusched_header_only INTERFACE ${_gpusched_target_${_package}})
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
  ROOMS core model topology verify fragmentation allocation consolidation preemption admission
  PUBLIC threads eigen boost)
gpusched_component(json ROOMS json NEEDS core PRIVATE nlohmann OPTIONAL libyaml)
gpusched_component(io ROOMS io NEEDS json PRIVATE csv OPTIONAL pugixml)
gpusched_component(milp ROOMS milp NEEDS core OPTIONAL highs cbc clp)
gpusched_component(serving ROOMS serving NEEDS json milp PRIVATE csv)
gpusched_component(control ROOMS control NEEDS json)
gpusched_component(host ROOMS host NEEDS control)
gpusched_component(sim ROOMS sim NEEDS control PRIVATE csv)
