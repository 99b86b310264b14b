"""``python -m forebay``."""

import sys

from .cli import main

sys.exit(main())
