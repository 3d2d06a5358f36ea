"""An array of the device in two processes, without a copy."""

import multiprocessing

import tcuda
from tcuda import xp


def work(inbox, outbox):
    """Change the array of the other process, and answer."""
    x = inbox.get()  # the same memory, and the current stream waits for the sender's work
    x *= 2
    tcuda.synchronize()  # the sender reads the array next
    outbox.put(float(x.sum()))
    del x
    inbox.get()  # the sender has read the array


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    inbox, outbox = spawn.Queue(), spawn.Queue()
    process = spawn.Process(target=work, args=(inbox, outbox))
    process.start()

    x = xp.arange(5.0)
    inbox.put(x)
    print("the worker's sum:", outbox.get())
    print("the same array here:", x.get())

    inbox.put(None)
    process.join()
    print("exit status:", process.exitcode)
