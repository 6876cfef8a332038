#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark very briefly, to check that all of them work. The figures mean nothing.
#
#   benchmarks/smoke.sh [build folder]     (default: build/release, which must have been built)
#
# Plain benchmark programs (benchmarks/<component>/<name>.cpp) and executable Python scripts
# (benchmarks/<component>/*.py) get --smoke and must end within two minutes. GPUSCHED_PYTHON names a Python
# that has gpusched (default: python3).
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/release}"
python="${GPUSCHED_PYTHON:-python3}"
failed=0
ran=0

try() {
  local start=$SECONDS
  if ! timeout 120 "$@" >build/smoke.log 2>&1 </dev/null; then
    cat build/smoke.log
    echo "failed: $*" >&2
    failed=1
  fi
  ran=$((ran + 1))
  echo "$((SECONDS - start)) s  $*"
}

mkdir -p build
for program in "$build"/benchmarks/bench_*; do
  [ -x "$program" ] || continue
  case "$program" in
    */bench_micro_*) try "$program" --benchmark_min_time=0.001 ;;
    *) try "$program" --smoke ;;
  esac
done
for script in benchmarks/*/*.py; do
  [ -x "$script" ] && [ "$script" != benchmarks/compile_time/measure.py ] && try "$python" "$script" --smoke
done
# One run shows that it works; its budget is for a quiet machine.
try "$python" benchmarks/compile_time/measure.py --runs 1 model/model.hpp consolidation/consolidate.hpp
try "$python" benchmarks/instructions.py "$build" --only feasibility --only preempt
try "$python" benchmarks/plan_hashes.py "$build" --quick
echo "$ran benchmarks ran"
exit "$failed"
