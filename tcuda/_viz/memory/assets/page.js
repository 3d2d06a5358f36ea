// The views, the choice of the device, and the figures at the top.

const HOST = -1; // the index of the page-locked memory of the host

const page = (() => {
  const choose = startTabs(VIEWS, showView);
  let view = VIEWS[0];
  let position = 0;

  function showView(name) {
    view = name;
    choose(name);
    details.letGo();
    if (name === "timeline") timeline.draw();
    if (name === "segments") segmentMap.draw();
    remember();
  }

  function showDevice(newPosition) {
    position = newPosition;
    const device = deviceAt(position);
    byId("device").value = position;
    details.letGo();
    showTotals(device);
    byId("peak-words").textContent = device.peakWords;
    timeline.show(device);
    segmentMap.show(device);
    comparisonTable.show(device);
    siteTable.show(device, (sites) => { showView("timeline"); timeline.highlight(sites); });
    remember();
  }

  /** Return the choices of the filter and of the groups, as the end of an address; empty if all are as at first. */
  function choices() {
    const { text, alive } = filter.state;
    const found = new URLSearchParams();
    if (text) found.set("find", text);
    if (alive) found.set("alive", "1");
    if (segmentMap.moment() !== null) found.set("event", segmentMap.moment());
    if (siteTable.kind() !== "line") found.set("by", siteTable.kind());
    return String(found) && `?${found}`;
  }

  /** Store the view and the device in the address, so that a reload or a link shows the same picture. */
  function remember() {
    try {
      history.replaceState(null, "", `#${view}/${keyOf(data.devices[position])}${choices()}`);
    } catch {
      // A viewer that shows the page in a frame may refuse a change of the address.
    }
  }

  function showTotals(device) {
    const { times } = device;
    const totals = [
      ["peak", "Peak allocated", bytesText(device.peakBytes)],
      ["end", "Allocated at the end", bytesText(device.endBytes)],
      ["reserved", "Reserved at the end", bytesText(device.reservedAtEnd)],
      device.reservedPeak > device.reservedAtEnd && ["most-reserved", "Peak reserved", bytesText(device.reservedPeak)],
      ["events", "Events", countText(device.events)],
      ["segment-count", "Segments", countText(device.segmentCount)],
    ].filter(Boolean);
    byId("totals").replaceChildren(...totals.map(([id, name, value]) => (
      element("div", {}, element("dt", {}, name), element("dd", { id: `total-${id}` }, value))
    )));
    const last = times.length - 1;
    byId("subtitle").textContent = [
      `${device.name[0].toUpperCase()}${device.name.slice(1)}`,
      !device.events && "no history",
      last > 0 && `${durationText(times[last] - times[0])} of history`,
      last >= 0 && `until ${new Date(times[last] / 1000).toLocaleString()}`,
    ].filter(Boolean).join(" · ");
    document.title = `${data.title}: peak ${bytesText(device.peakBytes)}, ${bytesText(device.reservedAtEnd)} reserved, ${countOf(device.events, "event")}`;
  }

  function startDevices() {
    const choice = element("select", { id: "device" });
    choice.replaceChildren(...data.devices.map(({ index, name }, place) => (
      element("option", { value: place }, index === HOST ? name : String(index))
    )));
    choice.addEventListener("change", () => showDevice(Number(choice.value)));
    byId("totals").before(element("label", { hidden: data.devices.length < 2 }, "Device ", choice));
  }

  function start() {
    const [, wantedView, wantedDevice, wantedChoices] = location.hash.match(/^#(\w+)\/(\w+)(?:\?(.*))?$/) ?? [];
    const wantedChoice = new URLSearchParams(wantedChoices);
    startDevices();
    filter.change({ text: wantedChoice.get("find") ?? "", alive: wantedChoice.has("alive") });
    siteTable.group(wantedChoice.get("by"));
    if (VIEWS.includes(wantedView) && !byId(`tab-${wantedView}`).hidden) view = wantedView;
    const wanted = data.devices.findIndex((device) => keyOf(device) === wantedDevice);
    showView(view);
    showDevice(Math.max(0, wanted >= 0 ? wanted : busiest()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { timeline.draw(); segmentMap.draw(); });
    if (wantedChoice.has("event")) segmentMap.goTo(Number(wantedChoice.get("event")));
    filter.onChange(remember);
    segmentMap.onMove(remember);
    siteTable.onGroup(remember);
    document.documentElement.dataset.ready = "true";
    requestAnimationFrame(() => setTimeout(() => { document.documentElement.dataset.painted = Math.round(performance.now()); }));
  }

  function busiest() {
    const peaks = data.devices.map((_, place) => deviceAt(place).peakBytes);
    const ofDevices = peaks.map((peak, place) => (data.devices[place].index === HOST ? 0 : peak));
    const shown = Math.max(...ofDevices) > 0 ? ofDevices : peaks;
    return shown.indexOf(Math.max(...shown));
  }

  /** Return the word for a device in the address of the page. */
  function keyOf({ index }) {
    return index === HOST ? "host" : String(index);
  }

  return { start };
})();

page.start();
