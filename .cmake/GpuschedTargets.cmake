# SPDX-License-Identifier: Apache-2.0
# Flags for gpusched's own targets. Nothing here reaches the targets of a project that includes gpusched.
include_guard()

if(GPUSCHED_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(GPUSCHED_CCACHE_PROGRAM ccache)
  mark_as_advanced(GPUSCHED_CCACHE_PROGRAM)
  if(GPUSCHED_CCACHE_PROGRAM)
    # The sloppiness is what ccache's manual asks for with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
                                    CCACHE_SLOPPINESS=pch_defines,time_macros
                                    ${GPUSCHED_CCACHE_PROGRAM})
  endif()
endif()

# gpusched_own_target(<target>): warnings, sanitizers and the language mode of this project.
function(gpusched_own_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(
    ${target}
    PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual>
            # Options are set with designated initialisers; the fields left out have defaults.
            $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wno-missing-field-initializers>
            # GCC 12 and 13 warn about "text" + std::string in the standard library's own code (GCC bug 105651).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,14>>:-Wno-restrict>
            # clang reports std::stable_sort of libstdc++ 12 for a deprecated function that it uses inside.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            $<$<AND:$<BOOL:${GPUSCHED_WARNINGS_AS_ERRORS}>,$<CXX_COMPILER_ID:GNU,Clang,AppleClang>>:-Werror>)
  if(GPUSCHED_SANITIZE)
    # A sixth of the compile time less: the address sanitizer sees what object-size would, and no pointer here can be misaligned.
    target_compile_options(${target} PRIVATE -fsanitize=${GPUSCHED_SANITIZE} -fno-sanitize=alignment,object-size
                                             -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # A static library's users must link the run-time too. libFuzzer's own flag differs between the two steps.
    string(REPLACE "fuzzer-no-link," "" _link "${GPUSCHED_SANITIZE}")
    get_target_property(_type ${target} TYPE)
    if(_type STREQUAL "STATIC_LIBRARY")
      target_link_options(${target} INTERFACE -fsanitize=${_link})
    else()
      target_link_options(${target} PUBLIC -fsanitize=${_link})
    endif()
  endif()
endfunction()
