// The geometry of the timeline: every allocation is a band as high as its size, on top of the older bands.

/** Return the position of each band: `bottom[k]` bytes from event `at[k]` on. A free moves all bands above down. */
function bandShapes(bands) {
  const shapes = bands.map(() => ({ at: [], bottom: [] }));
  const changes = [];
  bands.forEach((band, index) => {
    changes.push([band.start, 1, index]);
    if (band.end !== null) changes.push([band.end, 0, index]);
  });
  changes.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
  const stack = [];
  let height = 0;
  for (const [event, begins, index] of changes) {
    const { size } = bands[index];
    if (begins) {
      shapes[index].at.push(event);
      shapes[index].bottom.push(height);
      stack.push(index);
      height += size;
      continue;
    }
    const position = stack.indexOf(index);
    stack.splice(position, 1);
    height -= size;
    for (const above of stack.slice(position)) {
      const shape = shapes[above];
      shape.at.push(event);
      shape.bottom.push(shape.bottom[shape.bottom.length - 1] - size);
    }
  }
  return shapes;
}

/** Return the last index of a value that is at most `value`; 0 if there is none. */
function lastNotAbove(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** Return the bands right after an event, from the bottom to the top, each with its position in bytes. */
function bandsAt(bands, event) {
  let bottom = 0;
  const found = [];
  bands.forEach((band, index) => {
    if (band.start > event || (band.end !== null && band.end <= event)) return;
    found.push({ index, bottom });
    bottom += band.size;
  });
  return found;
}

/** Return the position of every event on the axis, with a position before the first event and one after the last. */
function positionsBy(axis, device) {
  const count = device.events;
  if (axis === "event") return Float64Array.from({ length: count + 2 }, (_, event) => event);
  const positions = new Float64Array(count + 2);
  for (let event = 1; event <= count; event += 1) positions[event] = device.times[event - 1] - device.times[0];
  const room = Math.max(positions[count] * 0.015, 1);
  positions[0] = -room;
  positions[count + 1] = positions[count] + room;
  return positions;
}
