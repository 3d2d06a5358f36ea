"""Arrays in other processes: leases of the sender, claims of the receiver, and the messages between them.

A sender keeps a lease for all memory that the sender has sent. A lease ends when no message is on the way, and no
process holds the memory.
"""
