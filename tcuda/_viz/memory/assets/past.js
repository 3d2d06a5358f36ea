// The state of all segments right after any event, from the allocations and the ranges of the segments.

/** Return the segments at an event, by pool and stream, in the form of the groups at the end. */
function groupsAt(device, event) {
  const lives = (start, end) => start <= event && (end === null || event < end);
  const groups = new Map();
  const segments = [];
  for (const [address, size, stream, knownPool, start, end] of device.spans) {
    if (!lives(start, end)) continue;
    const pool = knownPool ?? [0, 0]; // The events of a segment that was freed do not tell its pool.
    const key = `${pool} ${stream}`;
    if (!groups.has(key)) groups.set(key, { pool, stream, segments: [], bytes: [0, 0, 0], largestFree: 0, rounding: 0, reserved: 0 });
    const group = groups.get(key);
    const segment = { base: Number(address), address, size, kind: "", expandable: false, stack: 0, group, blocks: [] };
    group.segments.push(segment);
    group.reserved += size;
    segments.push(segment);
  }
  segments.sort((one, other) => one.base - other.base);
  const alive = allocationsAt(device.columns, event).sort((one, other) => device.columns.address[one] - device.columns.address[other]);
  let place = 0;
  for (const segment of segments) place = fillSegment(segment, alive, place, device.columns, event);
  for (const group of groups.values()) group.segments.sort((one, other) => other.size - one.size || one.base - other.base);
  return [...groups.values()].sort((one, other) => other.reserved - one.reserved);
}

function allocationsAt({ start, end }, event) {
  const found = [];
  for (let index = 0; index < start.length && start[index] <= event; index += 1) if (!(end[index] <= event)) found.push(index);
  return found;
}

/** Give a segment its blocks, and return the place of the first allocation behind the segment. */
function fillSegment(segment, alive, place, columns, event) {
  const { base, size, group } = segment;
  let offset = 0;
  const add = (bytes, requested, state, stack) => {
    if (bytes <= 0) return;
    const address = `0x${(base + offset).toString(16)}`;
    segment.blocks.push({ address, offset, size: bytes, requested, state, stack, segment });
    group.bytes[state] += bytes;
    if (state === 2) group.largestFree = Math.max(group.largestFree, bytes);
    offset += bytes;
  };
  while (place < alive.length && columns.address[alive[place]] < base) place += 1;
  for (; place < alive.length && columns.address[alive[place]] < base + size; place += 1) {
    const index = alive[place];
    add(columns.address[index] - base - offset, 0, 2, 0);
    const bytes = Math.min(columns.size[index], size - offset);
    add(bytes, bytes, columns.released[index] <= event ? 1 : 0, columns.stack[index]);
  }
  add(size - offset, 0, 2, 0);
  return place;
}
