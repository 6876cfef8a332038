#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares gpusched's feasibility with kube-scheduler's own filters: builds the oracle (tests/kubernetes/oracle, Go) once into
# build/kubernetes, then runs tests/kubernetes/compare.py with the wheel in build/venv, or GPUSCHED_PYTHON.
#
#   tests/kubernetes/run.sh          2,000 random clusters, the dump where it is present, the mutations
#   tests/kubernetes/run.sh --full   20,000 random clusters, with 500 in which each filter alone refuses
#   tests/kubernetes/run.sh --build  only the oracle
#   tests/kubernetes/run.sh --control-plane [PART...] [ARGUMENT...]  instead a real control plane (control_plane.py), built once as well
#   tests/kubernetes/run.sh ARGUMENT...  arguments of compare.py
#
# Exit status: 0 = they agree, 1 = they do not, 77 = skipped, since Go or its modules cannot be had (said in a line SKIPPED).
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

# Modules of Kubernetes 1.36 want this Go; another one fetches it, where it may.
go_wanted=1.26
out="$(pwd)/build/kubernetes"
mkdir -p "$out"

skip() { # <why>
  echo "SKIPPED: gpusched was not compared with kube-scheduler: $1"
  exit 77
}

# A program from tests/kubernetes/<name>, unless the one that is there was built from the same sources.
build() { # <name> [linker flag...]
  local name="$1" source="tests/kubernetes/$1" hash start
  shift
  hash="$(find "$source" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)"
  [ -x "$out/$name" ] && [ "$(cat "$out/$name.hash" 2>/dev/null)" = "$hash" ] && return 0
  command -v go >/dev/null || skip "no Go here (wanted: $go_wanted or newer, https://go.dev/dl)"
  start=$SECONDS
  export GOFLAGS="-mod=readonly -buildvcs=false"
  if ! (cd "$source" && go list -deps .) >"$out/modules.log" 2>&1 </dev/null; then
    tail -n 5 "$out/modules.log"
    skip "the Go modules cannot be had"
  fi
  echo "building $source on $(cd "$source" && go list -m -f '{{.Path}} {{.Version}}' k8s.io/kubernetes)"
  (cd "$source" && nice -n 10 go build -p "${GPUSCHED_JOBS:-2}" -trimpath -ldflags "-s -w $*" -o "$out/$name" .) </dev/null || {
    echo "error: $source does not build"
    exit 1
  }
  printf '%s' "$hash" >"$out/$name.hash"
  echo "built in $((SECONDS - start)) s"
}

program=compare.py
if [ "${1:-}" = "--control-plane" ]; then
  program=control_plane.py
  shift
  version="$(awk '$1 == "k8s.io/kubernetes" {print $2}' tests/kubernetes/control_plane/go.mod)"
  package=k8s.io/component-base/version
  build control_plane -X "$package.gitVersion=$version" -X "$package.gitMajor=1" -X "$package.gitMinor=$(cut -d. -f2 <<<"$version")"
else
  build oracle
fi
[ "${1:-}" = "--build" ] && exit 0
arguments=("$@")
[ "${1:-}" = "--full" ] && arguments=(--clusters 20000 --sole 500 "${@:2}")

python="${GPUSCHED_PYTHON:-build/venv/bin/python}"
[ -x "$python" ] || { echo "error: no $python: run tests/run.sh first, or set GPUSCHED_PYTHON"; exit 1; }
"$python" "tests/kubernetes/$program" "${arguments[@]}"
