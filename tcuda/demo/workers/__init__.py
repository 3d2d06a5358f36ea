"""The training on several workers of Dask, which may be on several machines.

Each worker has a device and works on a share of every batch. The workers add up their gradients among themselves, so
the program that started the training only receives a checkpoint after each epoch. If a worker dies, the program waits
for another worker and goes on from the last checkpoint.

:mod:`~tcuda.demo.workers.train` is the program. :mod:`~tcuda.demo.workers.team` runs an epoch on a group of workers and
notices the death of a worker. :mod:`~tcuda.demo.workers.member` is the part of one worker.
:mod:`~tcuda.demo.workers.cluster` starts a cluster, or connects to one.

The program may run on a machine without devices. So only :mod:`~tcuda.demo.workers.member` uses arrays of a device, and
only workers import this module.
"""
