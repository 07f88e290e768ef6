"""``python -m burnish.cli`` is the command line."""

import sys

from burnish.cli.entry import main

sys.exit(main())
