// The table of differences between the snapshot and another one, by site.

const comparisonTable = (() => {
  const MOST_ROWS = 300;
  const holder = byId("comparison");
  const body = holder.querySelector("tbody");
  let device = null;

  const signed = (bytes) => `${bytes < 0 ? "−" : bytes ? "+" : ""}${bytesText(Math.abs(bytes))}`;

  function show(newDevice) {
    device = newDevice;
    draw();
  }

  function draw() {
    const { compared } = device;
    if (!compared) return;
    const [peak, otherPeak] = compared.peak;
    const [end, otherEnd] = compared.end;
    byId("comparison-note").textContent = `From ${data.title} to ${compared.name}: `
      + `${signed(otherPeak - peak)} at the peak (${bytesText(peak)} to ${bytesText(otherPeak)}), `
      + `${signed(otherEnd - end)} at the end (${bytesText(end)} to ${bytesText(otherEnd)}).`;
    const found = compared.rows.map(unpack)
      .filter(({ stacks, first, second }) => stacks.some(filter.allowsStack) && (!filter.state.alive || first.alive || second.alive));
    body.replaceChildren(...found.slice(0, MOST_ROWS).map(rowElement));
    holder.dataset.rows = found.length;
  }

  const unpack = ([frame, stacks, first, second]) => ({ frame, stacks, first: usage(first), second: usage(second) });

  function rowElement(row) {
    const { frame, first, second } = row;
    const { name, place } = siteName(frame);
    const button = element("button", { className: "site", title: siteText(frame) }, element("b", {}, name), element("span", {}, place));
    const made = element("tr", {}, element("td", {}, button),
      element("td", {}, signed(second.atPeak - first.atPeak)),
      element("td", {}, bytesText(first.atPeak)), element("td", {}, bytesText(second.atPeak)),
      element("td", {}, signed(second.atEnd - first.atEnd)),
      element("td", {}, countText(first.count)), element("td", {}, countText(second.count)));
    made.addEventListener("click", () => {
      body.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
      made.setAttribute("aria-selected", "true");
      details.keep(row, ...details.ofDifference(row, data.title, device.compared.name));
    });
    return made;
  }

  filter.onChange(() => { if (device) draw(); });
  byId("tab-comparison").hidden = !data.devices.some(({ compared }) => compared);

  return { show };
})();
