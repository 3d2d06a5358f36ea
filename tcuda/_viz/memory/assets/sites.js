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
  const allRows = byId("all-rows");
  let device = null;
  let kind = "line";
  let sorted = { key: "atPeak", descending: true };
  let limited = true;
  let wasAlive = false;
  let onGroup = () => {};
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

  const KINDS = ["line", "function", "file", "stack", "scope"];

  /** Return the key, the names and the place of the row to which a stack of a site belongs. */
  function rowOf(site, stack) {
    const { frame } = site;
    const scope = scopeOf(stack);
    if (kind === "scope") return { key: scope, name: scope || "no scope", place: "", where: scope ? "scope of memory" : "outside of all scopes" };
    if (frame === null) return kind === "stack" ? { key: stack, ...label(null, stack) } : { key: "", ...label(null) };
    if (kind === "line") return { key: frame, ...label(frame), where: whereOf(frame) };
    if (kind === "stack") return { key: stack, ...label(frame, stack), where: whereOf(frame) };
    const { name, file } = frames[frame];
    if (kind === "file") return { key: file, name: baseName(file), place: file, where: file };
    return { key: `${name}\n${file}`, name, place: baseName(file), where: file };
  }

  /** Return the rows, each with the sums of the stacks that the filter allows. */
  function rows() {
    const found = new Map();
    for (const site of device.sites) {
      for (const part of site.stacks) {
        if (!filter.allowsStack(part.stack) || (filter.state.alive && !part.alive)) continue;
        const { key, ...names } = rowOf(site, part.stack);
        let row = found.get(key);
        if (!row) found.set(key, (row = { ...site, ...names, sites: [], stacks: [], atPeak: 0, atEnd: 0, alive: 0, count: 0, total: 0 }));
        for (const sum of ["atPeak", "atEnd", "alive", "count", "total"]) row[sum] += part[sum];
        row.stacks.push(part);
        if (row.sites[row.sites.length - 1] !== site) row.sites.push(site);
      }
    }
    return [...found.values()];
  }

  /** Return the label of a site. The label of a stack also shows its last Python call and the user's functions in it. */
  function label(frame, stack = null) {
    const { name, place } = siteName(frame);
    if (stack === null) return { name, place };
    const scope = scopeOf(stack) && `in ${scopeOf(stack)}`;
    if (frame === null) return { name, place: scope };
    const site = frames[frame];
    const called = stackFrames(stack).find(({ file }) => file.endsWith(".py"));
    const callers = stackFrames(stack).filter((other) => other.user && other !== site);
    return {
      name: called && called !== site ? `${name} › ${called.name}` : name,
      place: [scope, place, ...callers.map((caller) => `${caller.name}:${caller.line}`)].filter(Boolean).join(" ← "),
    };
  }

  function wanted() {
    const order = sorted.descending ? -1 : 1;
    const compare = sorted.key === "name"
      ? (one, other) => one.name.localeCompare(other.name) || one.place.localeCompare(other.place)
      : (one, other) => one[sorted.key] - other[sorted.key];
    return rows().sort((one, other) => order * compare(one, other));
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
    for (const other of KINDS) byId(`by-${other}`).setAttribute("aria-pressed", String(other === kind));
    byId("sites-note").textContent = noteOf(found);
    byId("sites").dataset.rows = found.length;
  }

  function noteOf(found) {
    const sum = (key) => found.reduce((sum, row) => sum + row[key], 0);
    const noun = { line: "site" }[kind] ?? kind;
    if (filter.state.alive) return `${countOf(found.length, noun)}, ${bytesText(sum("atEnd"))} in ${countOf(sum("alive"), "allocation")} at the end.`;
    return `${countOf(found.length, noun)}, ${countOf(sum("count"), "allocation")} in all.`;
  }

  function rowElement(row) {
    const button = element("button", { className: "site", title: `${row.name}  ${row.place}` },
      swatch(row), element("b", {}, row.name), element("span", {}, row.place));
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
      details.keep(row, ...details.ofSite(device, row, () => showInTimeline(row.sites)));
    });
    return made;
  }

  function group(newKind) {
    if (!KINDS.includes(newKind)) return;
    kind = newKind;
    if (device) draw();
    onGroup();
  }

  byId("by-scope").hidden = !data.scopes.length;
  for (const other of KINDS) byId(`by-${other}`).addEventListener("click", () => group(other));
  filter.onChange(() => {
    if (filter.state.alive !== wasAlive) sorted = { key: filter.state.alive ? "atEnd" : "atPeak", descending: true };
    wasAlive = filter.state.alive;
    if (device) draw();
  });
  allRows.addEventListener("click", () => { limited = false; draw(); });

  return { show, draw, group, kind: () => kind, onGroup: (listener) => { onGroup = listener; } };
})();
