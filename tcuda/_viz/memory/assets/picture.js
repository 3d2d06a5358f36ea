// Drawing of the timeline: axes, bands and lines. The mouse and the keys are handled in timeline.js.

const FLAG = { row: 15, rows: 2 };

const MARGIN = { left: 70, right: 14, top: 6 + FLAG.row * FLAG.rows, bottom: 24 };

const MARK_NAMES = { oom: "out of memory", snapshot: "snapshot" };

/** Return functions between events and bytes and the picture. `view` has positions x0 and x1, and bytes y0 and y1. */
function timelineScale(view, positions, width, height, ratio) {
  const plot = { left: MARGIN.left, top: MARGIN.top, right: width - MARGIN.right, bottom: height - MARGIN.bottom };
  plot.width = Math.max(1, plot.right - plot.left);
  plot.height = Math.max(1, plot.bottom - plot.top);
  const perX = plot.width / (view.x1 - view.x0);
  const perY = plot.height / (view.y1 - view.y0);
  const xOf = (position) => plot.left + (position - view.x0) * perX;
  const clamp = (x) => Math.min(Math.max(x, plot.left - 4), plot.right + 4);
  const last = positions.length - 2;
  return {
    plot, perX, perY, ratio, xOf,
    xOfEvent: (event) => Math.round(clamp(xOf(positions[event])) * ratio) / ratio,
    yOf: (bytes) => plot.bottom - (bytes - view.y0) * perY,
    positionOf: (x) => view.x0 + (x - plot.left) / perX,
    bytesOf: (y) => view.y0 + (plot.bottom - y) / perY,
    eventOf: (x) => Math.min(last, lastNotAbove(positions, view.x0 + (x - plot.left) / perX)),
    firstEvent: Math.min(last, lastNotAbove(positions, view.x0)),
    lastEvent: Math.min(last, lastNotAbove(positions, view.x1)),
  };
}

/** Return the path of a band from one event to another. Parts that are narrower than a pixel are left out. */
function bandPath(shape, size, from, to, scale) {
  const path = new Path2D();
  const height = size * scale.perY;
  const pixel = 1 / scale.ratio;
  const edge = [];
  let x = scale.xOfEvent(from);
  for (let part = lastNotAbove(shape.at, from); part < shape.at.length && shape.at[part] < to; part += 1) {
    const next = scale.xOfEvent(part + 1 < shape.at.length ? Math.min(shape.at[part + 1], to) : to);
    const isLast = part + 1 === shape.at.length || shape.at[part + 1] >= to;
    if (next <= x && !(isLast && !edge.length)) continue;
    edge.push([x, Math.max(next, x + pixel), scale.yOf(shape.bottom[part])]);
    x = next;
  }
  edge.forEach(([left, right, y], index) => {
    if (index) path.lineTo(left, y - height);
    else path.moveTo(left, y - height);
    path.lineTo(right, y - height);
  });
  for (const [left, right, y] of edge.reverse()) {
    path.lineTo(right, y);
    path.lineTo(left, y);
  }
  path.closePath();
  return path;
}

/** Return the peak of the live bytes in every column of pixels. */
function columnsOfLive(live, scale) {
  const { plot, ratio } = scale;
  const first = Math.round(plot.left * ratio);
  const columns = new Float64Array(Math.round(plot.width * ratio));
  for (let event = scale.firstEvent; event <= scale.lastEvent; event += 1) {
    const from = Math.max(0, Math.round(scale.xOfEvent(event) * ratio) - first);
    const to = Math.max(from + 1, Math.round(scale.xOfEvent(event + 1) * ratio) - first);
    for (let column = from; column < to && column < columns.length; column += 1) {
      if (live[event] > columns[column]) columns[column] = live[event];
    }
  }
  return columns;
}

function drawSilhouette(context, live, scale) {
  const { plot, ratio } = scale;
  const columns = columnsOfLive(live, scale);
  context.beginPath();
  context.moveTo(plot.left, scale.yOf(0));
  let height = -1;
  columns.forEach((bytes, column) => {
    if (bytes === height) return;
    const x = plot.left + column / ratio;
    if (height >= 0) context.lineTo(x, scale.yOf(height));
    context.lineTo(x, scale.yOf(bytes));
    height = bytes;
  });
  context.lineTo(plot.right, scale.yOf(Math.max(0, height)));
  context.lineTo(plot.right, scale.yOf(0));
  context.fill();
}

function hatchingOf(context, colour) {
  const tile = element("canvas", { width: 6, height: 6 });
  const drawing = tile.getContext("2d");
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1.6;
  for (const shift of [-6, 0, 6]) {
    drawing.moveTo(shift - 1, 7);
    drawing.lineTo(shift + 7, -1);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
}

/** Draw the bands in view and return their number. */
function drawBands(context, bands, shapes, scale, colour, isVivid) {
  const surface = colour("surface");
  const hatching = hatchingOf(context, surface);
  const fills = {};
  let drawn = 0;
  bands.forEach((band, index) => {
    const end = band.end ?? scale.lastEvent + 1;
    const from = Math.max(band.start, scale.firstEvent);
    const to = Math.min(end, scale.lastEvent + 1);
    if (from >= to) return;
    const path = bandPath(shapes[index], band.size, from, to, scale);
    const alpha = isVivid(band) ? band.colour.alpha : 0.1;
    context.globalAlpha = alpha;
    context.fillStyle = fills[band.colour.name] ??= colour(band.colour.name);
    context.fill(path);
    drawAwaiting(context, band, shapes[index], from, to, scale, hatching, alpha);
    if (band.size * scale.perY > 5 && scale.xOfEvent(to) - scale.xOfEvent(from) > 3) {
      context.globalAlpha = 0.45;
      context.strokeStyle = surface;
      context.stroke(path);
    }
    drawn += 1;
  });
  context.globalAlpha = 1;
  return drawn;
}

/** Hatch the part of a band between the request of its free and the completion of the free. */
function drawAwaiting(context, band, shape, from, to, scale, hatching, alpha) {
  const released = Math.max(band.released ?? to, from);
  if (released >= to || scale.xOfEvent(to) - scale.xOfEvent(released) < 2) return;
  context.globalAlpha = alpha;
  context.fillStyle = hatching;
  context.fill(bandPath(shape, band.size, released, to, scale));
}

function drawReserved(context, reserved, scale, colour) {
  if (!reserved.length) return;
  context.beginPath();
  let y = scale.yOf(reserved[0][1]);
  context.moveTo(scale.plot.left, y);
  for (const [event, bytes] of reserved) {
    const x = scale.xOfEvent(event);
    context.lineTo(x, y);
    y = scale.yOf(bytes);
    context.lineTo(x, y);
  }
  context.lineTo(scale.plot.right, y);
  context.strokeStyle = colour("reserved");
  context.lineWidth = 1.5;
  context.setLineDash([5, 3]);
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
}

function drawAxes(context, scale, view, axis, colour) {
  const { plot } = scale;
  context.font = canvasFont();
  context.fillStyle = colour("ink-2");
  context.strokeStyle = colour("line");
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const bytes of byteTicks(view.y0, view.y1, plot.height / 56)) {
    const y = Math.round(scale.yOf(bytes)) + 0.5;
    context.beginPath();
    context.moveTo(plot.left, y);
    context.lineTo(plot.right, y);
    context.stroke();
    context.fillText(tickText(bytes), plot.left - 8, y);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  const text = axis === "event" ? countText : durationText;
  for (const position of decimalTicks(view.x0, view.x1, plot.width / 110, axis === "event" ? 1 : 0.1)) {
    const x = scale.xOf(position);
    if (x < plot.left + 12 || x > plot.right - 12) continue;
    context.fillText(text(position), x, plot.bottom + 7);
  }
}

/** Draw a vertical line with a text at its top, on the side and in the row that have no other text. */
function drawFlag(context, x, text, scale, colour, taken) {
  const { plot } = scale;
  if (x < plot.left - 0.5 || x > plot.right + 0.5) return;
  context.font = `600 ${canvasFont()}`;
  const width = context.measureText(text).width;
  const isFree = ({ left, row }) => left >= plot.left && left + width <= plot.right + 4
    && taken.every((other) => row !== other.row || left > other.left + other.width + 6 || left + width < other.left - 6);
  const rows = Array.from({ length: FLAG.rows }, (_, row) => row);
  const sides = [x - 5 - width, x + 5];
  const place = rows.flatMap((row) => (taken.length ? sides.toReversed() : sides).map((left) => ({ left, row }))).find(isFree);
  const bottom = plot.top - 4 - (place?.row ?? 0) * FLAG.row;
  context.strokeStyle = context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, place?.row ? bottom - FLAG.row / 2 : plot.top - 4);
  context.lineTo(x, plot.bottom);
  context.setLineDash([2, 2]);
  context.stroke();
  context.setLineDash([]);
  if (!place) return;
  taken.push({ ...place, width, text });
  context.textBaseline = "bottom";
  context.textAlign = "left";
  context.fillText(text, place.left, bottom);
}

/** Draw the whole timeline, and return the number of bands in view and the texts of the lines. */
function drawTimeline(canvas, { device, shapes, positions, axis, view, isVivid }) {
  const { context, width, height, ratio } = freshCanvas(canvas);
  const colour = themeColours();
  const scale = timelineScale(view, positions, width, height, ratio);
  const { plot } = scale;
  drawAxes(context, scale, view, axis, colour);
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top - 2, plot.width, plot.height + 2);
  context.clip();
  context.fillStyle = colour("others");
  drawSilhouette(context, device.live, scale);
  const drawn = drawBands(context, device.bands, shapes, scale, colour, isVivid);
  drawReserved(context, device.reserved, scale, colour);
  context.restore();
  const baseline = Math.round(scale.yOf(view.y0)) + 0.5;
  context.strokeStyle = colour("line-strong");
  context.beginPath();
  context.moveTo(plot.left, baseline);
  context.lineTo(plot.right, baseline);
  context.stroke();
  const taken = [];
  // The peak comes first, at the left of its line, because the memory often runs out at the right of the peak.
  drawFlag(context, scale.xOf(positions[device.peak]), `peak ${bytesText(device.peakBytes)}`, scale, colour("ink"), taken);
  for (const [event, action] of device.marks) {
    drawFlag(context, scale.xOf(positions[event]), MARK_NAMES[action], scale, colour(action === "oom" ? "alarm" : "ink-2"), taken);
  }
  return { drawn, labels: taken.map(({ text }) => text) };
}
