#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a first result: installs what is missing, builds the Python package into its own environment
# (build/quickstart-venv) and runs examples/quickstart.py. A repeat rebuilds nothing unless the sources changed.
set -eu -o pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here/.."
# shellcheck source=../.ci/lib.sh
. .ci/lib.sh

# shellcheck disable=SC2086
gs_apt $GS_APT_BUILD
gs_cmake
gs_venv build/quickstart-venv "$GS_NUMPY" "matplotlib>=3.6" "pandas>=1.5"
gs_install_wheel build/quickstart-venv
exec build/quickstart-venv/bin/python examples/quickstart.py "$@"
