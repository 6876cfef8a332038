# SPDX-License-Identifier: Apache-2.0
# Shared by tests/run.sh, examples/quickstart.sh and .ci/run: system packages, Python environments, the wheel.
# To be sourced by bash, with the repository root as the current folder.

GS_ROOT="$(pwd)"
GS_JOBS="${GPUSCHED_JOBS:-$(nproc 2>/dev/null || echo 2)}"
export CMAKE_BUILD_PARALLEL_LEVEL="$GS_JOBS"
export PIP_DISABLE_PIP_VERSION_CHECK=1
# Paths in the tree count relative to it, so that builds in different folders of equal depth share what ccache holds.
export CCACHE_BASEDIR="$GS_ROOT"

# What is needed to build the library and the Python package, and what the tests need besides.
GS_APT_BUILD="g++ cmake ninja-build ccache libeigen3-dev libboost-dev nlohmann-json3-dev libfccp-dev coinor-libclp-dev
  coinor-libcbc-dev libpugixml-dev libyaml-dev python3 python3-venv python3-dev ca-certificates"
GS_APT_TEST="catch2 coinor-cbc glpk-utils libhwloc-dev"
# And what the benchmarks need.
GS_APT_BENCHMARK="libcli11-dev libbenchmark-dev valgrind"

# As in pyproject.toml.
GS_NUMPY="numpy>=1.23"

gs_say() { printf '\n==> %s\n' "$*"; }
gs_fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

gs_installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -q '^installed$'; }

# gs_apt <package>...: installs the packages that are missing; does nothing when none is.
gs_apt() {
  local missing=() package sudo=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "no apt-get here: assuming that these are installed: $*"
    return 0
  fi
  for package in "$@"; do
    gs_installed "$package" || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || gs_fail "these packages are missing, and there is no sudo: ${missing[*]}"
    sudo=(sudo)
  fi
  gs_say "Installing system packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || true
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
    </dev/null || gs_fail "apt-get could not install: ${missing[*]}"
}

# gs_python: prints a Python that can make environments and build extensions.
gs_python() {
  local candidate
  for candidate in "${GPUSCHED_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" - 2>/dev/null <<'PY'
import ensurepip, os, sys, sysconfig, venv
ok = sys.version_info >= (3, 10) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
sys.exit(0 if ok else 1)
PY
    then
      command -v "$candidate"
      return 0
    fi
  done
  gs_fail "no Python >= 3.10 with venv and headers found (set GPUSCHED_PYTHON)"
}

# gs_venv <folder> <requirement>...: an environment with these packages; nothing to do when it already has them.
gs_venv() {
  local venv="$1" stamp wanted python
  shift
  python="$(gs_python)" || exit 1
  stamp="$venv/.requirements"
  wanted="$python $*"
  if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return 0
  fi
  gs_say "Python environment $venv: $*"
  [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cut -d' ' -f1 "$stamp")" = "$python" ] ||
    "$python" -m venv --clear "$venv"
  "$venv/bin/python" -m pip install -q "$@" </dev/null || gs_fail "pip could not install: $*"
  printf '%s' "$wanted" >"$stamp"
}

# gs_cmake: a CMake that is new enough, from PyPI where the distribution's is not.
gs_cmake() {
  local have
  have="$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')"
  if [ "$(printf '%s\n' 3.25 "${have:-0}" | sort -V | head -n 1)" != 3.25 ]; then
    gs_venv build/cmake-venv "cmake>=3.25,<4"
    PATH="$GS_ROOT/build/cmake-venv/bin:$PATH"
  fi
}

# gs_requirements <name>: the packages of an extra of pyproject.toml, or with `requires` of a build, one per line.
gs_requirements() {
  "$(gs_python)" - "$1" <<'PY'
import re, sys
text = open("pyproject.toml", encoding="utf-8").read()
body = re.search(r"^%s = \[(.*?)\]\s*$" % re.escape(sys.argv[1]), text, re.S | re.M).group(1)
print("\n".join(re.findall(r'"([^"]+)"', body)))
PY
}

# gs_source_hash: one hash over all that the wheel is built from.
gs_source_hash() {
  find include src python .cmake CMakeLists.txt pyproject.toml LICENSE -type f \
    ! -path '*/__pycache__/*' -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# gs_tools: build/tools-venv, with what building the Python package requires and nothing else.
gs_tools() {
  local requirements
  mapfile -t requirements < <(gs_requirements requires)
  gs_venv build/tools-venv "${requirements[@]}"
}

# gs_wheel: builds the wheel into build/wheel unless the sources are unchanged; sets GS_WHEEL and GS_WHEEL_HASH. It is
# made from the source distribution, also there, so that what is installed needs nothing that the latter lacks.
gs_wheel() {
  local python new=build/wheel.new
  GS_WHEEL_HASH="$(gs_source_hash)"
  if [ "$(cat build/wheel/.hash 2>/dev/null)" = "$GS_WHEEL_HASH" ]; then
    GS_WHEEL="$(ls build/wheel/gpusched_algorithms-*.whl)"
    return 0
  fi
  gs_tools
  gs_say "Building the Python package"
  python="$GS_ROOT/build/tools-venv/bin/python"
  rm -rf "$new" build/sdist
  mkdir -p "$new" build/sdist
  "$python" -c "import scikit_build_core.build as b; b.build_sdist('$new')" </dev/null ||
    gs_fail "the source distribution cannot be made"
  tar -xzf "$new"/gpusched_algorithms-*.tar.gz -C build/sdist --strip-components=1
  # The compiler under the name that CMake finds, so that ccache has the library's objects.
  CXX="${CXX:-c++}" "$python" -m pip wheel -q --no-build-isolation --no-deps --wheel-dir "$new" ./build/sdist </dev/null ||
    gs_fail "the Python package does not build"
  rm -rf build/wheel build/sdist
  mv "$new" build/wheel
  printf '%s' "$GS_WHEEL_HASH" >build/wheel/.hash
  GS_WHEEL="$(ls build/wheel/gpusched_algorithms-*.whl)"
}

# gs_install_wheel <venv>: the current wheel in the environment.
gs_install_wheel() {
  local venv="$1"
  gs_wheel
  if [ "$(cat "$venv/.wheel" 2>/dev/null)" = "$GS_WHEEL_HASH" ]; then
    return 0
  fi
  gs_say "Installing $(basename "$GS_WHEEL") into $venv"
  # Older environments hold the package under the distribution name gpusched, which would count as another project's.
  "$venv/bin/python" -m pip uninstall -q -y gpusched </dev/null 2>/dev/null
  "$venv/bin/python" -m pip install -q --force-reinstall --no-deps "$GS_WHEEL" </dev/null ||
    gs_fail "the wheel does not install"
  printf '%s' "$GS_WHEEL_HASH" >"$venv/.wheel"
}
