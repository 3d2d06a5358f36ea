"""Helpers of several test modules. pytest has ``tests`` on the path of imports."""
