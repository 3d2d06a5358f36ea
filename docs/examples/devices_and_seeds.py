"""An array over all devices, and random numbers that can be drawn again."""

import tcuda
from tcuda import xp

devices = list(range(tcuda.device_count()))
print("devices:", len(devices))

# Each device gets a share of the rows, and works on a stream of its own.
table = xp.arange(12.0).reshape(6, 2)
shares = tcuda.comm.scatter(table, devices)
sums = []
for share in shares:
    with tcuda.device(share.device):
        sums.append(share.sum(axis=0))
print("sum:", tcuda.comm.reduce_add(sums, destination=0).get())

# Each device has a generator. Its state is a few bytes on the host.
tcuda.manual_seed_all(7)
state = tcuda.get_rng_state()
first = xp.random.random_sample(1000)
second = xp.random.random_sample(1000)
tcuda.set_rng_state(state)
again = xp.random.random_sample(1000)
print("the same numbers again:", bool((first == again).all()), bool((second == again).all()))

# A part of a program may draw numbers without changing the sequence of the rest.
tcuda.set_rng_state(state)
with tcuda.random.fork_rng():
    xp.random.random_sample(1000)
print("as if not drawn:", bool((xp.random.random_sample(1000) == first).all()))
