// The timeline: the view, the chosen band, and the mouse and keys that change both.

const timeline = (() => {
  const chart = byId("chart");
  const picture = byId("picture");
  const pointer = byId("pointer");
  const overview = byId("overview");
  const tip = byId("tip");
  const state = { device: null, shapes: [], positions: null, axis: "event", view: null, highlighted: null, isVivid };
  const keyOfSite = new Map(); // The entry of each site in the legend.
  let chosen = null; // { event, index }: a band; an index of null means all allocations without a band.

  function isVivid(band) {
    return (state.highlighted === null || state.highlighted.includes(band.site)) && filter.allowsBand(band);
  }

  const scale = () => timelineScale(state.view, state.positions, chart.clientWidth, chart.clientHeight, window.devicePixelRatio || 1);
  const isShown = () => chart.clientWidth > 0;

  function show(device) {
    Object.assign(state, { device, shapes: bandShapes(device.bands), axis: "event", highlighted: null });
    chosen = null;
    byId("by-time").disabled = device.times.length < 2;
    setAxis("event");
    showLegend();
    explain();
    byId("timeline").dataset.peak = device.peakBytes;
    byId("timeline").dataset.peakEvent = device.peak;
    byId("timeline").dataset.highest = whole().y1;
  }

  function setAxis(axis) {
    state.axis = axis;
    state.positions = positionsBy(axis, state.device);
    byId("by-event").setAttribute("aria-pressed", axis === "event");
    byId("by-time").setAttribute("aria-pressed", axis === "time");
    showEverything();
  }

  function whole() {
    const { device, positions } = state;
    const peak = Math.max(device.peakBytes, 1);
    // If much more memory is reserved than allocated, the line of reserved memory would leave no room for the bands.
    const highest = device.reservedPeak <= 2.5 * peak ? Math.max(peak, device.reservedPeak) : peak;
    return { x0: positions[0], x1: positions[positions.length - 1], y0: 0, y1: 1.04 * highest };
  }

  function showEverything() {
    state.view = whole();
    draw();
  }

  function explain() {
    const { device } = state;
    const small = device.allocations - device.bands.length;
    const notes = [];
    if (!device.events) notes.push("No history was recorded: this is what was allocated at the end.");
    else if (device.beforeTrace) notes.push(`${countOf(device.beforeTrace, "allocation")} began before the trace.`);
    const [event, , asked, free] = device.marks.findLast(([, action]) => action === "oom") ?? [];
    if (event) {
      const left = free === null ? "" : `, with ${bytesText(free)} free on the device`;
      notes.push(`Memory ran out at event ${countText(event)}: ${bytesText(asked)} asked for${left}.`);
    }
    if (small) notes.push(`The largest ${countText(device.bands.length)} are drawn one by one.`);
    byId("timeline-note").textContent = notes.join(" ");
    chart.setAttribute("aria-label", `Allocations over ${countOf(device.events, "event")}, peak ${bytesText(device.peakBytes)}`);
  }

  // Pictures

  function draw() {
    if (!state.device || !isShown()) return;
    const { drawn, labels } = drawTimeline(picture, state);
    byId("timeline").dataset.drawn = drawn;
    byId("timeline").dataset.labels = labels.join(", ");
    byId("timeline").dataset.vivid = state.device.bands.filter(isVivid).length;
    drawOverview();
    drawPointer();
  }
  const drawSoon = soon(draw);

  function drawOverview() {
    const { context, width, height, ratio } = freshCanvas(overview);
    const { device, positions, view } = state;
    const colour = themeColours();
    const all = { ...whole(), y1: Math.max(device.peakBytes, 1) };
    const small = timelineScale(all, positions, width, height + MARGIN.bottom + MARGIN.top - 4, ratio);
    context.translate(0, 2 - MARGIN.top);
    context.fillStyle = colour("ink-3");
    drawSilhouette(context, device.live, small);
    const left = Math.max(small.plot.left, small.xOf(view.x0));
    const right = Math.min(small.plot.right, small.xOf(view.x1));
    const { top, height: full } = small.plot;
    context.fillStyle = colour("surface");
    context.globalAlpha = 0.65;
    context.fillRect(small.plot.left, top, left - small.plot.left, full);
    context.fillRect(right, top, small.plot.right - right, full);
    context.globalAlpha = 1;
    context.strokeStyle = colour("accent");
    context.lineWidth = 1.5;
    context.strokeRect(left, top, Math.max(2, right - left), full);
  }

  function drawPointer() {
    const { context } = freshCanvas(pointer);
    if (!chosen) return;
    const colour = themeColours();
    const now = scale();
    const { plot } = now;
    context.beginPath();
    context.rect(plot.left, plot.top, plot.width, plot.height);
    context.clip();
    const x = (now.xOfEvent(chosen.event) + now.xOfEvent(chosen.event + 1)) / 2;
    context.strokeStyle = colour("ink-3");
    context.beginPath();
    context.moveTo(x, plot.top);
    context.lineTo(x, plot.bottom);
    context.stroke();
    if (chosen.index === null) return;
    const band = state.device.bands[chosen.index];
    const from = Math.max(band.start, now.firstEvent);
    const to = Math.min(band.end ?? now.lastEvent + 1, now.lastEvent + 1);
    if (from >= to) return;
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    context.stroke(bandPath(state.shapes[chosen.index], band.size, from, to, now));
  }
  const drawPointerSoon = soon(() => isShown() && drawPointer());

  function showLegend() {
    const { device } = state;
    keyOfSite.clear();
    const keys = device.sites.filter((site) => site.atPeak).slice(0, 6).map((site) => {
      const { name, place } = siteName(site.frame);
      const key = element("button", { className: "key", title: siteText(site.frame) },
        swatch(site), element("span", {}, place ? `${place} ${name}` : name), element("em", {}, bytesText(site.atPeak)));
      key.setAttribute("aria-pressed", "false");
      key.addEventListener("click", () => highlight(isHighlighted(site) ? null : [site]));
      keyOfSite.set(site, key);
      return key;
    });
    const small = device.allocations - device.bands.length;
    if (small) keys.push(element("span", { className: "key" }, element("i", { className: "swatch" }), countOf(small, "smaller allocation")));
    if (device.reserved.length) {
      keys.push(element("span", { className: "key" }, element("i", { className: "swatch dashed" }), `reserved, at most ${bytesText(device.reservedPeak)}`));
    }
    byId("legend").replaceChildren(...keys);
  }

  const isHighlighted = (site) => state.highlighted !== null && state.highlighted.includes(site);

  /** Make the bands of all other sites pale; null makes no band pale. */
  function highlight(chosenSites) {
    state.highlighted = chosenSites;
    for (const [site, key] of keyOfSite) key.setAttribute("aria-pressed", String(isHighlighted(site)));
    drawSoon();
  }

  // Choosing

  function choose(event, index) {
    chosen = { event, index };
    const { device } = state;
    if (index !== null) details.show(...details.ofBand(device, device.bands[index]));
    else details.clear();
    chart.dataset.event = event;
    drawPointerSoon();
  }

  /** Return the band at a place, null for the small allocations above all bands, undefined for an empty place. */
  function bandUnder(event, bytes) {
    if (bytes < 0 || bytes >= state.device.live[event]) return undefined;
    const { bands } = state.device;
    return bandsAt(bands, event).find(({ index, bottom }) => bytes < bottom + bands[index].size)?.index ?? null;
  }

  function tipContent(event, index) {
    const { device } = state;
    const when = [`${bytesText(device.live[event])} allocated after event ${countText(event)}`];
    if (device.times.length && event) when.push(durationText(device.times[event - 1] - device.times[0]));
    const line = element("span", {}, when.join(", "));
    if (index === undefined) return [line];
    if (index === null) {
      const drawn = bandsAt(device.bands, event).reduce((sum, { index }) => sum + device.bands[index].size, 0);
      return [element("b", {}, `${bytesText(device.live[event] - drawn)} in smaller allocations`), line];
    }
    const band = device.bands[index];
    const { name, place } = siteName(data.siteOfStack[band.stack]);
    return [element("b", {}, bytesText(band.size)), [name, place].filter(Boolean).join(", "), element("br"), line];
  }

  function showTip(x, y, event, index) {
    tip.replaceChildren(...tipContent(event, index));
    tip.hidden = false;
    const left = x + 16 + tip.offsetWidth > chart.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
    const top = Math.min(Math.max(0, y - tip.offsetHeight / 2), chart.clientHeight - tip.offsetHeight);
    tip.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }

  function pointAt(x, y) {
    const now = scale();
    const event = now.eventOf(x);
    const index = bandUnder(event, now.bytesOf(y));
    choose(event, index ?? null);
    showTip(x, y, event, index);
    return index;
  }

  function keep() {
    if (!chosen || chosen.index === null) return details.letGo();
    const band = state.device.bands[chosen.index];
    return details.keep(band, ...details.ofBand(state.device, band));
  }

  function stepEvent(by) {
    const { device, view } = state;
    const event = Math.min(Math.max((chosen?.event ?? device.peak) + by, 0), device.events);
    const there = bandsAt(device.bands, event);
    const same = there.find(({ index }) => index === chosen?.index) ?? there[there.length - 1];
    choose(event, same?.index ?? null);
    const position = state.positions[event];
    if (position < view.x0 || position > view.x1) moveBy(position - (view.x0 + view.x1) / 2, 0);
    tipAtChosen();
  }

  function stepBand(by) {
    const event = chosen?.event ?? state.device.peak;
    const there = bandsAt(state.device.bands, event);
    if (!there.length) return;
    const now = there.findIndex(({ index }) => index === chosen?.index);
    const next = now < 0 ? there.length - 1 : Math.min(Math.max(now + by, 0), there.length - 1);
    choose(event, there[next].index);
    tipAtChosen();
  }

  function tipAtChosen() {
    const now = scale();
    const found = bandsAt(state.device.bands, chosen.event).find(({ index }) => index === chosen.index);
    const middle = found ? found.bottom + state.device.bands[found.index].size / 2 : state.device.live[chosen.event];
    showTip(now.xOfEvent(chosen.event), now.yOf(middle), chosen.event, chosen.index);
  }

  // The view

  function zoom(factorX, factorY, x = null, y = null) {
    const { view } = state;
    const all = whole();
    const middleX = x ?? (chosen ? state.positions[chosen.event] : (view.x0 + view.x1) / 2);
    const middleY = y ?? view.y0;
    const smallest = state.axis === "event" ? 4 : Math.max(1, (all.x1 - all.x0) / 1e6);
    const factor = Math.max(factorX, smallest / (view.x1 - view.x0));
    state.view = within(all, {
      x0: middleX - (middleX - view.x0) * factor, x1: middleX + (view.x1 - middleX) * factor,
      y0: middleY - (middleY - view.y0) * factorY, y1: middleY + (view.y1 - middleY) * factorY,
    });
    drawSoon();
  }

  function within(all, { x0, x1, y0, y1 }) {
    const width = Math.min(x1 - x0, all.x1 - all.x0);
    const height = Math.min(Math.max(y1 - y0, 64), 4 * all.y1);
    const left = Math.min(Math.max(x0, all.x0), all.x1 - width);
    const low = Math.max(0, Math.min(y0, all.y1 - Math.min(height, all.y1)));
    return { x0: left, x1: left + width, y0: low, y1: low + height };
  }

  function moveBy(byX, byY) {
    const { x0, x1, y0, y1 } = state.view;
    state.view = within(whole(), { x0: x0 + byX, x1: x1 + byX, y0: y0 + byY, y1: y1 + byY });
    drawSoon();
  }

  function goToPeak() {
    const { device, positions } = state;
    const all = whole();
    const half = Math.min((all.x1 - all.x0) / 2, Math.max((all.x1 - all.x0) / 40, state.axis === "event" ? 30 : 1));
    const middle = positions[device.peak];
    state.view = within(all, { ...all, x0: middle - half, x1: middle + half });
    const there = bandsAt(device.bands, device.peak);
    const largest = there.reduce((best, one) => (best && device.bands[best.index].size >= device.bands[one.index].size ? best : one), null);
    choose(device.peak, largest?.index ?? null);
    drawSoon();
    tipAtChosen();
  }

  // Mouse and keys

  let drag = null;

  chart.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, y: event.offsetY, moved: false };
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointermove", (event) => {
    const { offsetX: x, offsetY: y } = event;
    if (drag && (drag.moved || Math.hypot(x - drag.x, y - drag.y) > 4)) {
      const now = scale();
      moveBy((drag.x - x) / now.perX, (y - drag.y) / now.perY);
      drag = { x, y, moved: true };
      chart.classList.add("moving");
      tip.hidden = true;
    } else if (!drag) pointAt(x, y);
  });
  chart.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      details.letGo();
      pointAt(event.offsetX, event.offsetY);
      keep();
    }
    drag = null;
    chart.classList.remove("moving");
  });
  chart.addEventListener("pointercancel", () => { drag = null; chart.classList.remove("moving"); });
  chart.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (details.kept() === null) chosen = null;
    else if (state.device.bands.includes(details.kept())) chosen = { event: chosen?.event ?? 0, index: state.device.bands.indexOf(details.kept()) };
    details.clear();
    drawPointerSoon();
  });
  chart.addEventListener("blur", () => { tip.hidden = true; });
  chart.addEventListener("wheel", (event) => {
    event.preventDefault();
    const now = scale();
    const amount = event.deltaY || event.deltaX; // with shift, some systems report horizontal turns
    const factor = Math.exp(Math.sign(amount) * Math.min(Math.abs(amount), 100) / 400);
    if (event.shiftKey) zoom(1, factor, null, now.bytesOf(event.offsetY));
    else zoom(factor, 1, now.positionOf(event.offsetX));
  }, { passive: false });

  const keys = {
    ArrowLeft: (event) => stepEvent(-stepSize(event)),
    ArrowRight: (event) => stepEvent(stepSize(event)),
    ArrowUp: () => stepBand(1),
    ArrowDown: () => stepBand(-1),
    Enter: keep,
    Escape: () => { details.letGo(); highlight(null); },
    "+": () => zoom(1 / 1.6, 1),
    "=": () => zoom(1 / 1.6, 1), // On many keyboards, "+" is "=" with shift.
    "-": () => zoom(1.6, 1),
    0: showEverything,
    p: goToPeak,
    P: goToPeak,
  };
  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key](event);
  });

  function stepSize(event) {
    const inView = scale().lastEvent - scale().firstEvent;
    return Math.max(1, Math.round(inView / (event.shiftKey ? 20 : 200)));
  }

  function moveOverview(event) {
    const { view, positions } = state;
    const all = timelineScale(whole(), positions, overview.clientWidth, overview.clientHeight, 1);
    moveBy(all.positionOf(event.offsetX) - (view.x0 + view.x1) / 2, 0);
  }
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); moveOverview(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) moveOverview(event); });

  byId("by-event").addEventListener("click", () => setAxis("event"));
  byId("by-time").addEventListener("click", () => setAxis("time"));
  byId("narrower").addEventListener("click", () => zoom(1 / 1.6, 1));
  byId("wider").addEventListener("click", () => zoom(1.6, 1));
  byId("taller").addEventListener("click", () => zoom(1, 1 / 1.6));
  byId("lower").addEventListener("click", () => zoom(1, 1.6));
  byId("everything").addEventListener("click", showEverything);
  byId("to-peak").addEventListener("click", goToPeak);
  filter.onChange(drawSoon);
  new ResizeObserver(drawSoon).observe(chart);

  return { show, draw, highlight };
})();
