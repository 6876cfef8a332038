#!/usr/bin/env bash
# Uses gpusched from outside: installed (static and shared; both targets; found by CMake and by pkg-config; after the
# installed tree was moved) and as a subdirectory. All in build/consume.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$(pwd)"
jobs="${GPUSCHED_JOBS:-$(nproc)}"
work="$root/build/consume"
export CCACHE_BASEDIR="$root"
rm -rf "$work"
mkdir -p "$work"

quiet() { "$@" >"$work/log" 2>&1 </dev/null || { cat "$work/log"; echo "failed: $*" >&2; exit 1; }; }

for kind in static shared; do
  shared=OFF
  [ "$kind" = shared ] && shared=ON
  echo "-- installing ($kind)"
  quiet cmake -S . -B "$work/build-$kind" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=$shared \
    -DGPUSCHED_BUILD_TESTS=OFF -DGPUSCHED_BUILD_EXAMPLES=OFF -DGPUSCHED_BUILD_BENCHMARKS=OFF
  lp=1 # where Clp is found, all ways to use gpusched must have it
  grep -q '^GPUSCHED_CLP_LIBRARY:.*NOTFOUND' "$work/build-$kind/CMakeCache.txt" && lp=0
  highs=0 # and HiGHS likewise
  grep -q '^highs_DIR:PATH=/' "$work/build-$kind/CMakeCache.txt" && highs=1
  expect="-DEXPECT_LP=$lp -DEXPECT_HIGHS=$highs"
  quiet cmake --build "$work/build-$kind" --parallel "$jobs"
  quiet cmake --install "$work/build-$kind" --prefix "$work/first-$kind"
  # A package must not know where it was installed first.
  mv "$work/first-$kind" "$work/prefix-$kind"
  # Where the dependencies are it may say, also if they were built below here.
  if grep -rhF "$root" "$work/prefix-$kind" --include='*.cmake' --include='*.pc' |
    sed "s|${CMAKE_PREFIX_PATH:-$work/none}||g" | grep -F "$root"; then
    echo "the installed package names its build folder" >&2
    exit 1
  fi

  echo "-- find_package ($kind)"
  quiet cmake -S tests/consume/find_package -B "$work/find-$kind" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_PREFIX_PATH="$work/prefix-$kind" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror $expect"
  quiet cmake --build "$work/find-$kind" --parallel "$jobs"
  quiet ctest --test-dir "$work/find-$kind" --output-on-failure --no-tests=error

  echo "-- pkg-config ($kind)"
  pc="$(find "$work/prefix-$kind" -name gpusched.pc)"
  export PKG_CONFIG_PATH="${pc%/*}"
  for package in gpusched gpusched-header-only; do
    # shellcheck disable=SC2046,SC2086
    quiet "${CXX:-c++}" -std=c++20 -O1 $expect tests/consume/main.cpp tests/consume/other.cpp -o "$work/app-$package" \
      $(pkg-config --cflags --libs "$package")
    LD_LIBRARY_PATH="$(pkg-config --variable=libdir gpusched):${LD_LIBRARY_PATH:-}" "$work/app-$package" >/dev/null
  done
done

echo "-- an unknown version is refused"
mkdir -p "$work/wrong"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(w LANGUAGES CXX)\nfind_package(gpusched 99 REQUIRED)\n' \
  >"$work/wrong/CMakeLists.txt"
if cmake -S "$work/wrong" -B "$work/wrong/b" -DCMAKE_PREFIX_PATH="$work/prefix-static" >"$work/log" 2>&1; then
  echo "version 99 was accepted" >&2
  exit 1
fi
grep -q 'requested version "99"' "$work/log"

echo "-- add_subdirectory"
quiet cmake -S tests/consume/add_subdirectory -B "$work/subdirectory" -G Ninja "-DCMAKE_CXX_FLAGS=$expect"
quiet cmake --build "$work/subdirectory" --parallel "$jobs"
quiet ctest --test-dir "$work/subdirectory" --output-on-failure --no-tests=error
echo "all outside projects built and ran"
