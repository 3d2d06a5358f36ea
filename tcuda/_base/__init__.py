"""What every room may need, and what needs no other room."""
