# SPDX-License-Identifier: Apache-2.0
"""`python -m gpusched`: the console script."""

import sys

from . import _core  # noqa: F401  # first: it reports modules that another distribution has replaced
from .cli import main

sys.exit(main())
