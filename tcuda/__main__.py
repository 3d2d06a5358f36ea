"""``python -m tcuda``."""

from tcuda.cli import command

if __name__ == "__main__":
    command()
