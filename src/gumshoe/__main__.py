"""`python -m gumshoe` is the `gumshoe` command."""

import sys

from gumshoe.cli import main

if __name__ == "__main__":
    sys.exit(main())
