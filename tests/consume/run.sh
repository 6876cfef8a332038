#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses gpusched from outside: the component core alone, and everything; installed (static and shared; found by CMake and by
# pkg-config; after the installed tree was moved), as a subdirectory, and core as a plain list of sources. All in build/consume and
# build/consume-*.
#
# With ccache the library is compiled once, or not at all after tests/run.sh: static and shared libraries and the component core
# built alone consist of the same objects. For that all build folders are equally deep.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$(pwd)"
jobs="${GPUSCHED_JOBS:-$(nproc)}"
work="$root/build/consume"
export CCACHE_BASEDIR="$root"
rm -rf "$work" "$work"-*
mkdir -p "$work"

quiet() { "$@" >"$work/log" 2>&1 </dev/null || { cat "$work/log"; echo "failed: $*" >&2; exit 1; }; }
began() { printf -- '-- %s (%d s)\n' "$*" "$SECONDS"; }

# install_gpusched <name> [cmake argument...]: builds and installs into $work/prefix-<name>
install_gpusched() {
  local name="$1"
  shift
  quiet cmake -S . -B "$work-$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGPUSCHED_BUILD_TESTS=OFF \
    -DGPUSCHED_BUILD_EXAMPLES=OFF -DGPUSCHED_BUILD_BENCHMARKS=OFF -DGPUSCHED_WARNINGS_AS_ERRORS=ON "$@"
  quiet cmake --build "$work-$name" --parallel "$jobs"
  quiet cmake --install "$work-$name" --prefix "$work/first-$name"
  # A package must not know where it was installed first.
  mv "$work/first-$name" "$work/prefix-$name"
  # Where the dependencies are it may say, also if they were built below here.
  if grep -rhF "$root" "$work/prefix-$name" --include='*.cmake' --include='*.pc' |
    sed "s|${CMAKE_PREFIX_PATH:-$work/none}||g" | grep -F "$root"; then
    echo "the installed package names its build folder" >&2
    exit 1
  fi
}

# use <folder of tests/consume> <name> [cmake argument...]: builds an outside project and runs its tests
use() {
  local project="$1" name="$2"
  shift 2
  quiet cmake -S "tests/consume/$project" -B "$work/$project-$name" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_PREFIX_PATH="$work/prefix-$name" "$@"
  quiet cmake --build "$work/$project-$name" --parallel "$jobs"
  quiet ctest --test-dir "$work/$project-$name" --output-on-failure --no-tests=error
}

# refused <message> <arguments of find_package...>
refused() {
  local message="$1"
  shift
  mkdir -p "$work/wrong"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(w LANGUAGES CXX)\nfind_package(gpusched %s)\n' "$*" \
    >"$work/wrong/CMakeLists.txt"
  if cmake -S "$work/wrong" -B "$work/wrong/b" -DCMAKE_PREFIX_PATH="$work/prefix-core-static" >"$work/log" 2>&1; then
    echo "find_package(gpusched $*) was accepted" >&2
    exit 1
  fi
  # CMake breaks lines where it likes.
  tr -s ' \n' ' ' <"$work/log" | grep -F "$message" >/dev/null || { cat "$work/log"; echo "no '$message'" >&2; exit 1; }
}

# ---- the component core, where nothing but Eigen and Boost is to be found ---------------------------------------
nothing_else=()
for package in nlohmann_json gpusched_csv Clp Cbc highs pugixml LibYaml; do
  nothing_else+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
for header in nlohmann/json.hpp csv.h coin/ClpSimplex.hpp ClpSimplex.hpp CbcModel.hpp Highs.h pugixml.hpp yaml.h; do
  mkdir -p "$work/hidden/$(dirname "$header")"
  printf '#error the component core must do without %s\n' "$header" >"$work/hidden/$header"
done
for kind in static shared; do
  shared=OFF
  [ "$kind" = shared ] && shared=ON
  began "the component core ($kind)"
  install_gpusched "core-$kind" -DGPUSCHED_COMPONENTS=core "-DCMAKE_CXX_FLAGS=-I$work/hidden" \
    -DBUILD_SHARED_LIBS=$shared "${nothing_else[@]}"
  use core "core-$kind" "${nothing_else[@]}" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -I$work/hidden"
done
for library in Clp lapack blas gfortran quadmath; do # Eigen has templates with such names
  if nm -C "$work/core-core-static/place" | grep -v 'Eigen::' | grep -i "$library" >/dev/null; then
    echo "a program that places a task holds symbols of $library" >&2
    exit 1
  fi
done
strip -o "$work/place" "$work/core-core-static/place"
echo "   a static program that places a task: $(stat -c %s "$work/place") bytes, stripped"
if nm -DC --defined-only "$work"/prefix-core-shared/lib*/libgpusched_core.so "$work"/prefix-core-shared/lib/*/libgpusched_core.so \
  2>/dev/null | grep -E ' [TDB] ' | grep -vE "gpusched::|gpusched_version_string|_init|_fini"; then
  echo "the shared library exports symbols that are not gpusched's" >&2
  exit 1
fi

began "the component core as a plain list of sources" # docs/abi.md; each folder is one source here, which is faster
mkdir -p "$work/plain"
for folder in core model topology verify fragmentation allocation consolidation preemption admission; do
  for source in src/$folder/*.cpp; do printf '#include "%s"\n' "$root/$source"; done >"$work/plain/$folder.cpp"
  printf '%s\0' "$work/plain/$folder.cpp"
done >"$work/plain/sources"
eigen="$(pkg-config --cflags eigen3)"
# shellcheck disable=SC2086
(cd "$work/plain" && quiet xargs -0 -a sources -n 1 -P "$jobs" "${CXX:-c++}" -std=c++20 -O0 "-I$root/include" "-I$root/src" $eigen "-I$work/hidden" -c)
# shellcheck disable=SC2086
quiet "${CXX:-c++}" -std=c++20 -O0 "-I$root/include" $eigen tests/consume/core/place.cpp "$work"/plain/*.o -o "$work/app-plain"
"$work/app-plain" >/dev/null

began "pkg-config, core alone"
pc="$(find "$work/prefix-core-static" -name gpusched-core.pc)"
# shellcheck disable=SC2046
PKG_CONFIG_PATH="${pc%/*}" quiet "${CXX:-c++}" -std=c++20 "-I$work/hidden" tests/consume/core/place.cpp -o "$work/app-core" \
  $(PKG_CONFIG_PATH="${pc%/*}" pkg-config --cflags --libs gpusched-core)
"$work/app-core" >/dev/null

began "unknown versions and components are refused"
refused 'requested version "99"' '99 REQUIRED'
refused 'gpusched has no component nonsense; there are: core;json;io;milp' 'REQUIRED COMPONENTS core nonsense'
refused 'built without the component io' 'REQUIRED COMPONENTS io'

# ---- all components -------------------------------------------------------------------------------------------
for kind in static shared; do
  shared=OFF
  [ "$kind" = shared ] && shared=ON
  began "all components ($kind)"
  install_gpusched "$kind" -DBUILD_SHARED_LIBS=$shared
  lp=1 # where Clp is found, all ways to use gpusched must have it
  grep -q '^GPUSCHED_CLP_LIBRARY:.*NOTFOUND' "$work-$kind/CMakeCache.txt" && lp=0
  highs=0 # and HiGHS likewise
  grep -q '^highs_DIR:PATH=/' "$work-$kind/CMakeCache.txt" && highs=1
  expect="-DEXPECT_LP=$lp -DEXPECT_HIGHS=$highs"
  use find_package "$kind" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror $expect"

  began "pkg-config ($kind)"
  pc="$(find "$work/prefix-$kind" -name gpusched.pc)"
  export PKG_CONFIG_PATH="${pc%/*}"
  # shellcheck disable=SC2046,SC2086
  quiet "${CXX:-c++}" -std=c++20 $expect tests/consume/main.cpp tests/consume/other.cpp -o "$work/app-gpusched" \
    $(pkg-config --cflags --libs gpusched)
  LD_LIBRARY_PATH="$(pkg-config --variable=libdir gpusched):${LD_LIBRARY_PATH:-}" "$work/app-gpusched" >/dev/null
done

# Its objects have other paths, so ccache has none of them: compiled without optimisation.
began "add_subdirectory"
quiet cmake -S tests/consume/add_subdirectory -B "$work-subdirectory" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  "-DEXPECT=EXPECT_LP=$lp;EXPECT_HIGHS=$highs"
quiet cmake --build "$work-subdirectory" --parallel "$jobs"
quiet ctest --test-dir "$work-subdirectory" --output-on-failure --no-tests=error
began "all outside projects built and ran"
