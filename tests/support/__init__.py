"""Helpers of several test modules; pytest puts ``tests`` on the import path."""
