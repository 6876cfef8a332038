"""`python -m gpusched`: the console script."""

import sys

from . import _core  # noqa: F401  # first: it tells where another distribution has replaced the modules below
from .cli import main

sys.exit(main())
