// The panel at the side: the details of the band, block or site under the mouse.

const STATE_NAMES = ["allocated", "awaiting free", "free"];
const AWAITING = 1;
const FREE = 2;

const VIEWS = ["timeline", "segments", "sites", "comparison"];

const HELP = {
  timeline: {
    text: [
      "Every band is an allocation. Its length is the life of the allocation, and its height is the size. Point at a band to see its stack; a click keeps the details here.",
      "Sizes are as requested, before rounding. Hatched memory was freed while another stream could still use it.",
    ],
    keys: [["drag", "move"], ["wheel", "zoom"], ["shift wheel", "zoom the bytes"], ["← →", "other event"], ["↑ ↓", "other allocation"],
      ["enter", "keep it here"], ["+ −", "zoom"], ["0", "fit"], ["P", "go to the peak"], ["esc", "let go"]],
  },
  segments: {
    text: ["Every bar is a segment, memory that the allocator holds at the chosen event, with its blocks. Point at a block to see the stack that allocated it; a click keeps the details here."],
    keys: [["← →", "other block"], ["↑ ↓", "other row"], ["esc", "let go"]],
  },
  sites: {
    text: ["A site is the innermost line of a stack that is not in tcuda, CuPy, NumPy, torch or Python itself. A click on a row shows the stacks of the site."],
    keys: [],
  },
  comparison: {
    text: ["Each row is a site: the change of its bytes from one snapshot to the other. A click on a row shows the figures of both."],
    keys: [],
  },
};

const details = (() => {
  const panel = byId("details");
  let kept = null;

  function table(rows) {
    return element("dl", {}, ...rows.filter(Boolean).flatMap(([name, value, className]) => [
      element("dt", {}, name), element("dd", { className: className ?? "" }, value),
    ]));
  }

  function stackList(stack) {
    if (!data.stacks[stack].length) return element("p", {}, "No stack was recorded.");
    const all = stackFrames(stack);
    if (!all.some(({ user }) => user)) return element("ol", { className: "stack" }, ...all.map(frameItem));
    const items = [];
    let internal = [];
    const fold = () => { if (internal.length) items.push(foldItem(internal)); internal = []; };
    for (const frame of all) {
      if (frame.user) { fold(); items.push(frameItem(frame)); }
      else internal.push(frame);
    }
    fold();
    return element("ol", { className: "stack" }, ...items);
  }

  const frameItem = ({ name, file, line, user }) => (
    element("li", { className: user ? "user" : "" }, element("b", {}, name), element("span", {}, line ? `${file}:${line}` : file))
  );

  /** Return one line for a run of frames of libraries. A click shows the frames. */
  const foldItem = (internal) => element("li", { className: "folded" }, element("details", {},
    element("summary", {}, countOf(internal.length, "internal frame")), element("ol", {}, ...internal.map(frameItem))));

  const section = (title, content) => [element("h3", {}, title), content];

  function eventText(device, event) {
    if (!device.times.length || !event) return countText(event);
    return `${countText(event)}, at ${durationText(device.times[event - 1] - device.times[0])}`;
  }

  function lifetime(device, band) {
    if (!band.start || band.end === null || !device.times.length) return null;
    return ["Lived", durationText(device.times[band.end - 1] - device.times[band.start - 1])];
  }

  function ofBand(device, band) {
    return [
      element("h2", {}, swatch(band.site), "Allocation"),
      table([
        ["Size", exactBytesText(band.size)],
        ["Address", band.address, "hex"],
        ["Stream", streamText(band.stream)],
        ["Allocated", band.start ? `event ${eventText(device, band.start)}` : "before the trace began"],
        band.released !== null && ["Free requested", `event ${eventText(device, band.released)}`],
        ["Freed", band.end === null ? "still allocated at the end" : `event ${eventText(device, band.end)}`],
        lifetime(device, band),
        scopeOf(band.stack) && ["Scope", scopeOf(band.stack)],
        band.note && ["Note", band.note],
      ]),
      ...section("Allocated by", stackList(band.stack)),
      ...(data.stacks[band.freedBy].length ? section("Freed by", stackList(band.freedBy)) : []),
    ];
  }

  function ofBlock(device, block) {
    const { segment } = block;
    const used = block.state !== FREE;
    return [
      element("h2", {}, used ? swatch(siteOfBlock(device, block)) : element("i", { className: "swatch free" }), `Block, ${STATE_NAMES[block.state]}`),
      table([
        ["Size", exactBytesText(block.size)],
        used && ["Requested", exactBytesText(block.requested)],
        ["Address", block.address, "hex"],
        ["Offset", exactBytesText(block.offset)],
        used && scopeOf(block.stack) && ["Scope", scopeOf(block.stack)],
      ]),
      ...(used ? section("Allocated by", stackList(block.stack)) : []),
      element("h3", {}, "Segment"),
      table([
        ["Size", exactBytesText(segment.size)],
        ["Address", segment.address, "hex"],
        ["Kind", [segment.kind, segment.expandable && "expandable"].filter(Boolean).join(", ") || "unknown"],
        ["Pool", poolText(segment.group.pool)],
        ["Stream", streamText(segment.group.stream)],
        ["Blocks", countText(segment.blocks.length)],
      ]),
      ...(data.stacks[segment.stack].length ? section("Segment allocated by", stackList(segment.stack)) : []),
    ];
  }

  function ofSite(device, site, showInTimeline) {
    const shown = site.stacks.slice(0, 5);
    const more = site.stacks.length - shown.length;
    return [
      element("h2", {}, swatch(site), site.name ?? siteName(site.frame).name),
      table([
        ["Where", site.where ?? whereOf(site.frame)],
        ["At the peak", `${bytesText(site.atPeak)}, ${percentText(site.atPeak, device.peakBytes)}`],
        ["At the end", `${bytesText(site.atEnd)}, ${percentText(site.atEnd, device.endBytes)}, ${countOf(site.alive, "allocation")}`],
        ["Allocations", countText(site.count)],
        ["In all", exactBytesText(site.total)],
      ]),
      element("button", { className: "plain", onclick: showInTimeline }, "Show in the timeline"),
      ...shown.flatMap(({ stack, atPeak, count }) => (
        section(`${countOf(count, "allocation")}, ${bytesText(atPeak)} at the peak`, stackList(stack))
      )),
      ...(more > 0 ? [element("h3", {}, `${countOf(more, "more stack")}, smaller`)] : []),
    ];
  }

  function ofDifference({ frame, stacks, first, second }, name, otherName) {
    const figures = (sums) => table([
      ["At the peak", bytesText(sums.atPeak)],
      ["At the end", `${bytesText(sums.atEnd)}, ${countOf(sums.alive, "allocation")}`],
      ["Allocations", countText(sums.count)],
      ["In all", exactBytesText(sums.total)],
    ]);
    return [
      element("h2", {}, siteName(frame).name), table([["Where", whereOf(frame)]]),
      ...section(`In ${name}`, figures(first)), ...section(`In ${otherName}`, figures(second)),
      ...stacks.flatMap((stack) => section("Largest stack", stackList(stack))),
    ];
  }

  function nothing() {
    const { text, keys } = HELP[VIEWS.find((view) => !byId(view).hidden)];
    panel.replaceChildren(
      element("h2", {}, "Details"),
      ...text.map((paragraph) => element("p", {}, paragraph)),
      element("dl", { className: "keys" }, ...keys.flatMap(([key, what]) => [element("dt", {}, key), element("dd", {}, what)])),
    );
  }

  return {
    ofBand, ofBlock, ofSite, ofDifference,
    /** Show the parts, unless a click keeps other details. */
    show(...parts) {
      if (kept === null) panel.replaceChildren(...parts);
    },
    keep(thing, ...parts) {
      kept = thing;
      panel.replaceChildren(...parts);
      panel.scrollTop = 0;
    },
    clear() {
      if (kept === null) nothing();
    },
    letGo() {
      kept = null;
      nothing();
    },
    kept: () => kept,
  };
})();

const whereOf = (frame) => (frame === null ? "unknown" : `${frames[frame].file}:${frames[frame].line}`);

function swatch(site) {
  const { name, alpha } = siteColour(site);
  const made = element("i", { className: "swatch" });
  made.style.background = `var(--${name})`;
  made.style.opacity = alpha;
  return made;
}

const isDefaultPool = (pool) => pool.every((part) => part === 0);

const poolText = (pool) => (isDefaultPool(pool) ? "default pool" : `private pool (${pool.join(", ")})`);
