// The table of allocation sites.

const siteTable = (() => {
  const MOST_ROWS = 300;
  const COLUMNS = [
    { key: "name", title: "Site" },
    { key: "atPeak", title: "Live at the peak", text: bytesText, meter: true },
    { key: "atEnd", title: "Live at the end", text: bytesText },
    { key: "count", title: "Allocations", text: countText },
    { key: "total", title: "Bytes in all", text: bytesText },
  ];
  const table = byId("sites").querySelector("table");
  const head = table.tHead.rows[0];
  const body = table.tBodies[0];
  const find = byId("find");
  const allRows = byId("all-rows");
  let device = null;
  let byStack = false;
  let sorted = { key: "atPeak", descending: true };
  let limited = true;
  let showInTimeline = () => {};

  for (const { key, title } of COLUMNS) {
    const button = element("button", {}, title);
    button.addEventListener("click", () => sortBy(key));
    const cell = element("th", { scope: "col" }, button);
    cell.dataset.key = key;
    head.append(cell);
  }

  function show(newDevice, onShowInTimeline) {
    device = newDevice;
    showInTimeline = onShowInTimeline;
    draw();
  }

  function sortBy(key) {
    const descending = sorted.key === key ? !sorted.descending : key !== "name";
    sorted = { key, descending };
    draw();
  }

  /** Return one row for each site, or one for each stack. The row of a stack opens the site with this stack alone. */
  function rows() {
    const { sites } = device;
    if (!byStack) return sites.map((site) => ({ ...site, ...label(site.frame), whole: site, site }));
    return sites.flatMap((site) => site.stacks.map((part) => ({
      ...part, ...label(site.frame, part.stack), whole: site, site: { ...site, ...part, stacks: [part] },
    })));
  }

  /** Return the label of a site. The label of a stack also shows its last Python call and the user's functions in it. */
  function label(frame, stack = null) {
    const { name, place } = siteName(frame);
    if (stack === null || frame === null) return { name, place };
    const site = frames[frame];
    const called = stackFrames(stack).find(({ file }) => file.endsWith(".py"));
    const callers = stackFrames(stack).filter((other) => other.user && other !== site);
    return {
      name: called && called !== site ? `${name} › ${called.name}` : name,
      place: [place, ...callers.map((caller) => `${caller.name}:${caller.line}`)].join(" ← "),
    };
  }

  function wanted() {
    const text = find.value.trim().toLowerCase();
    const matches = rows().filter(({ name, place, site }) => (
      !text || `${name} ${place} ${site.frame === null ? "" : frames[site.frame].file}`.toLowerCase().includes(text)
    ));
    const order = sorted.descending ? -1 : 1;
    const compare = sorted.key === "name"
      ? (one, other) => one.name.localeCompare(other.name) || one.place.localeCompare(other.place)
      : (one, other) => one[sorted.key] - other[sorted.key];
    return matches.sort((one, other) => order * compare(one, other));
  }

  function draw() {
    for (const cell of head.cells) {
      if (cell.dataset.key === sorted.key) cell.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    const found = wanted();
    const shown = limited ? found.slice(0, MOST_ROWS) : found;
    body.replaceChildren(...shown.map(rowElement));
    allRows.hidden = shown.length === found.length;
    allRows.textContent = `Show all ${countText(found.length)} rows`;
    byId("by-line").setAttribute("aria-pressed", String(!byStack));
    byId("by-stack").setAttribute("aria-pressed", String(byStack));
    byId("sites-note").textContent = `${countOf(found.length, byStack ? "stack" : "site")}, ${countOf(device.allocations, "allocation")} in all.`;
    byId("sites").dataset.rows = found.length;
  }

  function rowElement(row) {
    const button = element("button", { className: "site", title: `${row.name}  ${row.place}` },
      swatch(row.site), element("b", {}, row.name), element("span", {}, row.place));
    const cells = COLUMNS.slice(1).map(({ key, text, meter }) => {
      const cell = element("td", {}, text(row[key]));
      if (meter) {
        const bar = element("span", { className: "meter" });
        bar.style.width = `${device.peakBytes ? (100 * row[key]) / device.peakBytes : 0}%`;
        cell.append(bar);
      }
      return cell;
    });
    const made = element("tr", {}, element("td", {}, button), ...cells);
    made.addEventListener("click", () => {
      body.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
      made.setAttribute("aria-selected", "true");
      details.keep(row.site, ...details.ofSite(device, row.site, () => showInTimeline(row.whole)));
    });
    return made;
  }

  const choose = (stacks) => () => { byStack = stacks; draw(); };
  byId("by-line").addEventListener("click", choose(false));
  byId("by-stack").addEventListener("click", choose(true));
  find.addEventListener("input", draw);
  allRows.addEventListener("click", () => { limited = false; draw(); });

  return { show, draw };
})();
