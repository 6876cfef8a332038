# SPDX-License-Identifier: Apache-2.0
# cmake "-DSOURCES=<files>" -DFLAGS=<flags.cmake> -P controls.cmake: compiles all files with GPUSCHED_CONTROL defined.
include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
set(_unit "")
set(_last "")
foreach(_source IN LISTS SOURCES)
  cmake_path(GET _source STEM _name)
  file(READ "${_source}" _text)
  if(_text MATCHES "\ntemplate <>") # a specialisation of the library's templates cannot stand in a namespace
    string(APPEND _last "#include \"${_source}\"\n")
  else()
    string(APPEND _unit "namespace control_${_name} {\n#include \"${_source}\"\n}\n")
  endif()
endforeach()
cmake_path(GET headers PARENT_PATH _folder)
file(WRITE "${_folder}/controls.cpp" "${_unit}${_last}")
execute_process(COMMAND ${command} -fsyntax-only -DGPUSCHED_CONTROL -include "${headers}" "${_folder}/controls.cpp"
                RESULT_VARIABLE _code)
if(NOT _code EQUAL 0)
  message(FATAL_ERROR "with GPUSCHED_CONTROL defined every file must compile")
endif()
