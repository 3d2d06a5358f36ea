"""The parts that a process has once: initialisation, the ledger, captures, fork and exit, and names of devices."""
