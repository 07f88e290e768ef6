"""``python -m burnish`` is the command line."""

import sys

from burnish.cli import main

sys.exit(main())
