# The compiled sources: src/version.cpp, and for every room src/<room>.cpp, which includes all bodies of that room.
include_guard()

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
