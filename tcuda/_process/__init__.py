"""The parts that a process has once: initialisation, the ledger, captures, fork, exit, and arguments for devices."""
