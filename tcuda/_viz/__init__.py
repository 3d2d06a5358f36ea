"""The pages of HTML that tcuda writes: of snapshots of memory, and of races."""
