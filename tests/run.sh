#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the library and the Python wheel, and runs all tests: ctest, then pytest.
# Needs a shell, git and apt (root or sudo); runs from any folder, and again at any time. Ends with the summary line of
# each runner; the exit status is not 0 when either fails.
#
#   tests/run.sh                  everything
#   GPUSCHED_JOBS=8 tests/run.sh  with eight jobs instead of one per processor
#   GPUSCHED_CMAKE_ARGS=-D...     more arguments for cmake
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# shellcheck source=../.ci/lib.sh
. .ci/lib.sh

logs=build/logs
mkdir -p "$logs"
rm -f "$logs"/ctest.summary "$logs"/pytest.summary

# shellcheck disable=SC2086
gs_apt $GS_APT_BUILD $GS_APT_TEST
gs_cmake
mapfile -t requirements < <(gs_requirements test)
[ "${#requirements[@]}" -gt 0 ] || gs_fail "pyproject.toml has no extra 'test'"
gs_say "Python environment build/venv, meanwhile"
gs_venv build/venv "$GS_NUMPY" "${requirements[@]}" >"$logs/venv.log" 2>&1 </dev/null &
venv=$!

gs_say "Configuring and building the library and its tests (build/ci, $GS_JOBS jobs)"
# shellcheck disable=SC2086
cmake --preset ci ${GPUSCHED_CMAKE_ARGS:-} >"$logs/configure.log" 2>&1 </dev/null || {
  cat "$logs/configure.log"
  gs_fail "cmake could not configure the project"
}
# The build tool prints every step; errors are shown as they come.
cmake --build build/ci --parallel "$GS_JOBS" </dev/null || gs_fail "the build failed"
gs_wheel # finds the library's objects in ccache

wait "$venv" || {
  cat "$logs/venv.log"
  gs_fail "the Python environment could not be made"
}
gs_install_wheel build/venv

gs_say "ctest"
ctest --test-dir build/ci --output-on-failure --parallel "$GS_JOBS" --no-tests=error </dev/null 2>&1 |
  tee "$logs/ctest.log"
ctest_status=${PIPESTATUS[0]}
grep -E '^[0-9]+% tests passed' "$logs/ctest.log" >"$logs/ctest.summary" || echo "ctest: no summary" >"$logs/ctest.summary"

gs_say "pytest"
build/venv/bin/pytest --numprocesses "$GS_JOBS" </dev/null 2>&1 | tee "$logs/pytest.log"
pytest_status=${PIPESTATUS[0]}
tail -n 1 "$logs/pytest.log" >"$logs/pytest.summary"

gs_say "Summary"
cat "$logs/ctest.summary" "$logs/pytest.summary"
[ "$ctest_status" -eq 0 ] && [ "$pytest_status" -eq 0 ]
