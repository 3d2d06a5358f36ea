"""What several test modules import: ``tests`` is on the path of pytest."""
