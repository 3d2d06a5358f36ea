"""Modules that every room may need, and that need no other room."""
