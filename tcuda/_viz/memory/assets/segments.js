// The segments, as bars on one scale that wrap like words: a long bar goes on in the next row.

const segmentMap = (() => {
  const ROW = { height: 22, step: 27, gap: 3 };
  const LEGEND = 6; // the most sites that the legend names
  const MOST_ROWS = 400; // Browsers limit the height of a canvas.
  const holder = byId("groups");
  const choice = byId("row-bytes");
  let device = null;
  let maps = [];
  let rowBytes = 0;
  let moment = null; // The event whose state is shown; null for the end.
  let onMove = () => {};

  function show(newDevice) {
    device = newDevice;
    moment = null;
    byId("moment").max = device.events;
    for (const id of ["moment", "moment-before", "moment-after", "moment-peak", "moment-end"]) byId(id).disabled = !device.events;
    const reserved = Math.max(device.reservedAtEnd, 1);
    const options = rowSizes(reserved);
    rowBytes = options.find((bytes) => bytes >= reserved / 12) ?? options[options.length - 1];
    choice.replaceChildren(...options.map((bytes) => (
      element("option", { value: bytes, selected: bytes === rowBytes }, tickText(bytes))
    )));
    showMoment();
  }

  function showMoment() {
    const groups = moment === null ? device.groups : groupsAt(device, moment);
    const count = groups.reduce((sum, group) => sum + group.segments.length, 0);
    byId("moment").value = moment ?? device.events;
    byId("moment-text").textContent = moment === null ? "The end, with blocks as rounded."
      : `After event ${countText(moment)} of ${countText(device.events)}: ${bytesText(device.live[moment])} allocated. Blocks are as requested.`;
    maps = groups.map((group) => ({ group, canvas: canvasOf(group), rows: [], chosen: null }));
    holder.replaceChildren(...(maps.length ? maps.map(section) : [element("p", { className: "hint" }, "There are no segments.")]));
    maps.forEach(listen);
    showLegend(groups);
    byId("segments").dataset.segments = count;
    byId("segments").dataset.blocks = groups.reduce((sum, group) => group.segments.reduce((all, { blocks }) => all + blocks.length, sum), 0);
    draw();
  }

  /** Show the state right after an event. The state after the last event is the recorded one. */
  function goTo(event) {
    const wanted = Math.min(Math.max(Math.round(event) || 0, 0), device.events);
    moment = wanted === device.events ? null : wanted;
    details.letGo();
    showMoment();
    onMove();
  }

  function rowSizes(reserved) {
    const sizes = [];
    for (let bytes = 2 ** 20; bytes < 2 * reserved || !sizes.length; bytes *= 2) {
      if (reserved / bytes < MOST_ROWS / 2) sizes.push(bytes);
    }
    return sizes;
  }

  function canvasOf(group) {
    const canvas = element("canvas", { tabIndex: 0 });
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "map");
    canvas.setAttribute("aria-label", `${countOf(group.segments.length, "segment")} of ${groupName(group)}`);
    return canvas;
  }

  const groupName = (group) => `${poolText(group.pool)}, ${streamText(group.stream)}`;

  function section({ group, canvas }) {
    const [allocated, awaiting, free] = group.bytes;
    const name = groupName(group);
    const facts = [
      countOf(group.segments.length, "segment"),
      `${bytesText(group.reserved)} reserved`,
      `${bytesText(allocated)} allocated (${percentText(allocated, group.reserved)})`,
      awaiting && `${bytesText(awaiting)} awaiting free`,
      `${bytesText(free)} free, at most ${bytesText(group.largestFree)} in one piece`,
      group.rounding && `${bytesText(group.rounding)} lost to rounding`,
    ];
    return element("div", { className: "group" },
      element("h2", {}, name[0].toUpperCase() + name.slice(1)),
      element("p", {}, facts.filter(Boolean).join(" · ")), canvas);
  }

  /** Show the sites that hold most bytes in the segments. */
  function showLegend(groups) {
    const bytes = new Map();
    const count = (site, size) => bytes.set(site, (bytes.get(site) ?? 0) + size);
    for (const { segments } of groups) {
      for (const block of segments.flatMap(({ blocks }) => blocks)) {
        if (block.state !== FREE) count(siteOfBlock(device, block), block.size);
      }
    }
    const largest = [...bytes].sort((one, other) => other[1] - one[1]).slice(0, LEGEND);
    const key = (...content) => element("span", { className: "key" }, ...content);
    const keys = largest.map(([site, size]) => {
      const { name, place } = siteName(site.frame);
      return key(swatch(site), element("span", { title: siteText(site.frame) }, place ? `${place} ${name}` : name), element("em", {}, bytesText(size)));
    });
    if (bytes.size > largest.length) keys.push(key(countOf(bytes.size - largest.length, "more site")));
    const states = ["awaiting", "free"].map((state, place) => key(element("i", { className: `swatch ${state}` }), STATE_NAMES[AWAITING + place]));
    byId("segments-legend").replaceChildren(...keys, ...states);
  }

  // Geometry

  /** Return rows of pieces. A piece is a part of a block in one row; `starts` and `ends` mark the edges of segments. */
  function layOut(group, width) {
    const rows = [[]];
    let x = 0;
    const newRow = () => { rows.push([]); x = 0; };
    for (const segment of group.segments) {
      const full = Math.max(2, (segment.size / rowBytes) * width);
      const perByte = full / segment.size;
      if (x && x + full > width + 0.01) newRow();
      for (const block of segment.blocks) {
        let left = block.size * perByte;
        let starts = block === segment.blocks[0];
        while (left > 0) {
          const part = Math.min(left, width - x);
          if (part > 0) rows[rows.length - 1].push({ block, x, width: part, starts, ends: false });
          starts = false;
          left -= part;
          x += part;
          if (left > 1e-6) newRow();
          else left = 0;
        }
      }
      const row = rows[rows.length - 1];
      if (row.length) row[row.length - 1].ends = true;
      x += ROW.gap;
      if (x >= width) newRow();
    }
    return rows.filter((row) => row.length);
  }

  // Drawing

  function draw() {
    const width = holder.clientWidth;
    if (!width) return;
    for (const map of maps) {
      map.rows = layOut(map.group, width);
      map.canvas.style.height = `${map.rows.length * ROW.step}px`;
      drawMap(map);
    }
    byId("segments").dataset.drawn = maps.reduce((sum, map) => sum + new Set(map.rows.flat().map(({ block }) => block)).size, 0);
  }
  const drawSoon = soon(draw);

  function drawMap({ canvas, rows, chosen }) {
    const { context } = freshCanvas(canvas, holder.clientWidth, rows.length * ROW.step);
    const colour = themeColours();
    const hatching = hatchingOf(context, colour("surface"));
    rows.forEach((row, number) => {
      const y = number * ROW.step + 2;
      for (const { block, x, width } of row) {
        const { name, alpha } = block.state === FREE ? { name: "free", alpha: 1 } : siteColour(siteOfBlock(device, block));
        context.fillStyle = colour(name);
        context.globalAlpha = block.state === FREE || filter.allowsStack(block.stack) ? alpha : 0.1;
        context.fillRect(x, y, width, ROW.height);
        if (block.state !== AWAITING) continue;
        context.fillStyle = hatching;
        context.fillRect(x, y, width, ROW.height);
      }
      context.globalAlpha = 1;
      context.fillStyle = colour("surface");
      for (const { block, x, width, starts } of row) {
        if (!starts && width > 3 && block.state !== FREE) context.fillRect(x - 0.5, y, 1, ROW.height);
      }
      outlineSegments(context, row, y, colour("line-strong"));
    });
    if (chosen) outlineChosen(context, rows, chosen, colour("ink"));
  }

  function outlineSegments(context, row, y, colour) {
    context.strokeStyle = colour;
    let left = 0;
    row.forEach((piece, index) => {
      if (!index || piece.starts) left = piece.x;
      if (!piece.ends && index + 1 < row.length) return;
      const right = piece.x + piece.width;
      if (right - left > 3) context.strokeRect(left + 0.5, y + 0.5, right - left - 1, ROW.height - 1);
    });
  }

  function outlineChosen(context, rows, chosen, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    rows.forEach((row, number) => {
      for (const { block, x, width } of row) {
        if (block === chosen) context.strokeRect(x, number * ROW.step + 1, Math.max(width, 2), ROW.height + 2);
      }
    });
  }

  // Choosing

  function blockUnder(map, x, y) {
    const row = map.rows[Math.floor(y / ROW.step)] ?? [];
    return row.find((piece) => x >= piece.x && x < Math.max(piece.x + piece.width, piece.x + 1))?.block ?? null;
  }

  function choose(map, block) {
    for (const other of maps) {
      if (other.chosen === (other === map ? block : null)) continue;
      other.chosen = other === map ? block : null;
      drawMap(other);
    }
    if (block) details.show(...details.ofBlock(device, block));
    else details.clear();
  }

  function keep(map) {
    details.letGo();
    if (map.chosen) details.keep(map.chosen, ...details.ofBlock(device, map.chosen));
  }

  function step(map, by) {
    const blocks = map.group.segments.flatMap((segment) => segment.blocks);
    const now = blocks.indexOf(map.chosen);
    choose(map, blocks[Math.min(Math.max(now < 0 ? 0 : now + by, 0), blocks.length - 1)] ?? null);
    keep(map);
  }

  function stepRow(map, by) {
    const now = map.rows.findIndex((row) => row.some((piece) => piece.block === map.chosen));
    const from = map.rows[now]?.find((piece) => piece.block === map.chosen);
    const row = map.rows[Math.min(Math.max(now + by, 0), map.rows.length - 1)] ?? [];
    const middle = from ? from.x + from.width / 2 : 0;
    const next = row.find((piece) => piece.x + piece.width > middle) ?? row[row.length - 1];
    choose(map, next?.block ?? null);
    keep(map);
  }

  function listen(map) {
    const { canvas } = map;
    canvas.addEventListener("pointermove", (event) => {
      if (details.kept() === null) choose(map, blockUnder(map, event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => { if (details.kept() === null) choose(map, null); });
    canvas.addEventListener("click", (event) => {
      details.letGo();
      choose(map, blockUnder(map, event.offsetX, event.offsetY));
      keep(map);
    });
    const keys = {
      ArrowLeft: () => step(map, -1), ArrowRight: () => step(map, 1),
      ArrowUp: () => stepRow(map, -1), ArrowDown: () => stepRow(map, 1),
      Enter: () => keep(map), Escape: () => { details.letGo(); choose(map, null); },
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  byId("moment").addEventListener("input", () => goTo(Number(byId("moment").value)));
  byId("moment-before").addEventListener("click", () => goTo((moment ?? device.events) - 1));
  byId("moment-after").addEventListener("click", () => goTo((moment ?? device.events) + 1));
  byId("moment-peak").addEventListener("click", () => goTo(device.peak));
  byId("moment-end").addEventListener("click", () => goTo(device.events));
  choice.addEventListener("change", () => { rowBytes = Number(choice.value); draw(); });
  filter.onChange(drawSoon);
  new ResizeObserver(drawSoon).observe(byId("segments"));

  return { show, draw, goTo, moment: () => moment, onMove: (listener) => { onMove = listener; } };
})();
