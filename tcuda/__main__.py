"""``python -m tcuda``."""

import sys

from tcuda.cli import main

if __name__ == "__main__":
    sys.exit(main())
