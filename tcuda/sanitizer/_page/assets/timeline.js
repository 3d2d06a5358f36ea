// The timeline of a race: a lane for each stream, time goes down, and the missing order is a dashed line.

const LEAST_LANE = 140;
const LANE = 230; // where the lanes do not fit, and the picture scrolls
const DIGIT = 6.5;
const TOP = 8;
const NAMES = 32; // the height of the names of the lanes
const ROW = 32;
const BOX = 24;
const PAD = 10;
const LETTER = 6.8;
const LEAST_WORDS = 14; // a narrower box of a wait leaves out its line
const GAP = 42; // the room above the second access, in which the missing order is drawn
const CORNER = 8;
const LETTERS = 26;

const HOST = "host";
const SECOND = "second";
const laneKey = (thing) => (isHost(thing) ? HOST : `${thing.device} ${thing.stream}`);

const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Return a place in which the line stays, however long the name of the file is. */
function shortPlace(site, length) {
  if (site === null) return placeText(site);
  const line = `:${site.line}`;
  return short(baseName(site.file), Math.max(length - line.length, 4)) + line;
}

/** Return the name of an event by the order of events: A, B, ..., Z, A1, ... */
function eventNames(shown) {
  const names = new Map();
  for (const { event } of shown) {
    if (event === null || names.has(event)) continue;
    const number = names.size;
    const round = Math.floor(number / LETTERS);
    names.set(event, String.fromCharCode(65 + (number % LETTERS)) + (round || ""));
  }
  return names;
}

/** Return the steps around a race, the steps of both accesses included, in the order in which they happened. */
function stepsOf(race) {
  const shown = race.events.map((place) => steps[place]);
  // The steps may begin after the first access, and have one step for all operations of a graph.
  const stepFor = (access) => {
    const known = shown.find((step) => step.kind === "work" && step.number === access.number && laneKey(step) === laneKey(access));
    if (known) return known;
    const made = {
      number: access.number, device: access.device, stream: access.stream, kind: "work", name: access.operation,
      event: null, wholeDevice: false, site: accessSite(access),
    };
    const later = shown.findIndex((step) => step.number > made.number);
    shown.splice(later < 0 ? shown.length : later, 0, made);
    return made;
  };
  return { shown, previous: stepFor(race.previous), current: stepFor(race.current) };
}

/** Return the steps without events that tcuda made for itself, if these order nothing between streams, and repeated waits. */
function withoutOwn(shown) {
  const recorded = new Map();
  const ordering = new Set();
  for (const step of shown) {
    const from = recorded.get(step.event);
    if (step.kind === "record") recorded.set(step.event, step);
    if (step.kind === "wait" && from && laneKey(from) !== laneKey(step)) ordering.add(from).add(step);
  }
  const line = ({ kind, site, event, wholeDevice, ...step }) => [kind, laneKey(step), event, wholeDevice, site?.file, site?.line].join("\n");
  return shown.filter((step, place) => (
    step.kind === "sync" ? !place || line(step) !== line(shown[place - 1]) : !step.own || ordering.has(step)
  ));
}

/**
 * Return the timeline of a race: its lanes, its rows and its edges. With `everything`, all streams have a lane.
 * The lanes fill `width` pixels if there is room for them.
 */
function layOut(race, everything, width) {
  const all = stepsOf(race);
  const names = new Map();
  for (const access of [race.previous, race.current]) names.set(laneKey(access), streamOf(access));
  const devices = new Set(all.shown.map((step) => step.device).filter((device) => device >= 0));
  const own = new Set([HOST, ...names.keys()]);
  const isShown = (step) => everything || own.has(laneKey(step));
  const shown = everything ? all.shown : withoutOwn(all.shown.filter(isShown));
  // Branches of a graph are on one stream, and the default streams of threads have one handle.
  const second = names.size > 1 ? laneKey(race.current) : SECOND;
  names.set(second, streamOf(race.current) + (names.size > 1 ? "" : race.current.launchStack ? ", another branch" : ", another thread"));
  const keyOf = (step) => (step === all.current ? second : laneKey(step));
  const keys = [laneKey(race.previous), second, ...shown.map(keyOf)];
  if (shown.some(({ kind }) => kind === "sync")) keys.push(HOST);
  const found = [...new Set(keys)].sort((one, other) => (other === HOST) - (one === HOST));
  const lanes = found.map((key) => {
    if (key === HOST) return { key, name: "the host" };
    if (key === SECOND) return { key, name: names.get(key) };
    const [device, stream] = key.split(" ");
    const name = names.get(key) ?? streamText(stream);
    return { key, name: devices.size > 1 ? `${name}, device ${device}` : name, device: Number(device) };
  });
  const laneOf = new Map(lanes.map(({ key }, place) => [key, place]));
  const secondAt = shown.indexOf(all.current);
  const rows = shown.map((step, row) => ({
    step, lane: laneOf.get(step.kind === "sync" ? HOST : keyOf(step)), y: TOP + row * ROW + ROW / 2 + (row < secondAt ? 0 : GAP),
  }));
  const left = 2 * PAD + DIGIT * Math.max(...shown.map(({ number }) => countText(number).length));
  const share = (width - left - PAD) / lanes.length;
  const laneWidth = share < LEAST_LANE ? LANE : share;
  return {
    lanes, rows, left, laneWidth, edges: edgesOf(rows, lanes), events: eventNames(shown),
    previous: rows.find(({ step }) => step === all.previous),
    current: rows.find(({ step }) => step === all.current),
    others: all.shown.length > withoutOwn(all.shown.filter((step) => own.has(laneKey(step)))).length,
  };
}

/** Return the orders between lanes: from a record to its waits, and from the work that the host waits for. */
function edgesOf(rows, lanes) {
  const recorded = new Map();
  const edges = [];
  const host = lanes.findIndex(({ key }) => key === HOST);
  for (const row of rows) {
    const { step } = row;
    const from = step.event === null ? undefined : recorded.get(step.event);
    if (step.kind === "record") recorded.set(step.event, row);
    if (step.kind === "wait" && from && from.lane !== row.lane) edges.push({ from, to: row });
    if (step.kind !== "sync") continue;
    if (from) edges.push({ from, to: row });
    else lanes.forEach(({ key, device }, lane) => {
      if (lane === host) return;
      if (step.wholeDevice ? device === step.device : key === laneKey(step)) edges.push({ from: { y: row.y, lane }, to: row });
    });
  }
  return edges;
}

/** Return what a step does, in words. */
function stepWords({ step }, plan) {
  const event = step.event === null ? "an event" : `event ${plan.events.get(step.event)}`;
  if (step.kind === "record") return `records ${event}`;
  if (step.kind === "wait") return `waits for ${event}`;
  if (step.kind !== "sync") return step.name || "work";
  if (step.event !== null) return `waits for ${event}`;
  if (step.wholeDevice) return `waits for device ${step.device}`;
  return `waits for ${plan.lanes.find(({ key }) => key === laneKey(step))?.name ?? streamText(step.stream)}`;
}

const laneCentre = ({ left, laneWidth }, lane) => left + (lane + 0.5) * laneWidth;

/** Return half of the width of a box; 0 for a point on a lane. */
function halfOf({ laneWidth }, { step }) {
  if (!step) return 0;
  return laneWidth / 2 - PAD;
}

function orderPath(plan, { from, to }) {
  const side = to.lane > from.lane ? 1 : -1;
  const [x1, x2] = [laneCentre(plan, from.lane) + side * halfOf(plan, from), laneCentre(plan, to.lane) - side * halfOf(plan, to)];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${x2} ${to.y}`;
}

/** Return the path of the missing order: out of the first access, down between the lanes, and into the second. */
function missingPath(plan) {
  const { previous, current } = plan;
  const [x, y, top] = [laneCentre(plan, current.lane), current.y - GAP / 2 - ROW / 2 + 10, current.y - BOX / 2];
  const side = current.lane < previous.lane ? -1 : 1;
  const out = laneCentre(plan, previous.lane) + side * halfOf(plan, previous);
  const gutter = out + side * PAD;
  const turn = x < gutter ? -CORNER : CORNER;
  return `M${out} ${previous.y} Q${gutter} ${previous.y} ${gutter} ${previous.y + CORNER} V${y - CORNER} Q${gutter} ${y} ${gutter + turn} ${y} H${x - turn} Q${x} ${y} ${x} ${y + CORNER} V${top}`;
}

function boxOf(row, plan, race) {
  const { step } = row;
  const access = row === plan.current ? race.current : row === plan.previous ? race.previous : null;
  const words = stepWords(row, plan);
  const half = halfOf(plan, row);
  const [x, y] = [laneCentre(plan, row.lane), row.y];
  const isKnown = step.site !== null;
  const site = shortPlace(step.site, Math.floor(half / 5));
  const whole = 2 * half - 16;
  const beside = whole - LETTER * site.length - 8;
  const hasLine = isKnown && (step.kind === "work" || beside >= LETTER * Math.min(words.length, LEAST_WORDS));
  const name = shape("text", { x: x - half + 8, y: y + 4 }, short(words, Math.floor((hasLine ? beside : whole) / LETTER)));
  const line = hasLine ? [shape("text", { class: "where", x: x + half - 8, y: y + 4 }, site)] : [];
  return shape("g", { class: `step ${step.kind}${step.own ? " own" : ""}${access ? " access" : ""}` },
    shape("title", {}, `${words}${step.own ? ", made by tcuda" : ""}${isKnown ? `, ${step.site.file}:${step.site.line}` : ""}${access ? `; ${wordsOf(race, access).does}` : ""}`),
    shape("rect", { x: x - half, y: y - BOX / 2, width: 2 * half, height: BOX, rx: step.kind === "work" ? 4 : BOX / 2 }),
    name, ...line);
}

const widthOf = (plan) => plan.left + plan.lanes.length * plan.laneWidth + PAD;

/** Return the names of the lanes, which stay in sight above the timeline. */
function laneNames(plan) {
  const width = widthOf(plan);
  return shape("svg", { class: "timeline names", width, height: NAMES, viewBox: `0 0 ${width} ${NAMES}`, "aria-hidden": "true" },
    ...plan.lanes.map(({ name }, lane) => (
      shape("text", { class: "lane-name", x: laneCentre(plan, lane), y: 21 }, shape("title", {}, name), short(name, Math.floor(plan.laneWidth / 7.4)))
    )));
}

/** Return the picture of a timeline. The table beside the picture has the same steps in words. */
function timelinePicture(race, plan) {
  const width = widthOf(plan);
  const height = TOP + plan.rows.length * ROW + GAP + PAD;
  const { previous, current } = plan;
  const side = current.lane <= previous.lane ? -1 : 1;
  return shape("svg", {
    class: "timeline", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Timeline of ${countOf(plan.lanes.length, "stream")} with ${countOf(plan.rows.length, "step")}. ${race.words.sentence}`,
  },
  shape("defs", {}, ...["order", "missing"].map((name) => (
    shape("marker", { id: `tip-${name}`, class: name, markerUnits: "userSpaceOnUse", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, orient: "auto" }, shape("path", { d: "M0 0 L8 4 L0 8 z" }))
  ))),
  ...plan.lanes.map((_, lane) => shape("line", { class: "lane", x1: laneCentre(plan, lane), y1: 0, x2: laneCentre(plan, lane), y2: height })),
  ...plan.rows.filter(({ step }) => step.kind === "work").map((row) => shape("text", { class: "number", x: plan.left - PAD, y: row.y + 4 }, countText(row.step.number))),
  ...plan.edges.map((edge) => shape("path", { class: "order", d: orderPath(plan, edge), "marker-end": "url(#tip-order)" })),
  ...plan.rows.map((row) => boxOf(row, plan, race)),
  shape("path", { class: "missing", d: missingPath(plan), "marker-end": "url(#tip-missing)" }),
  shape("text", { class: "missing-name", x: laneCentre(plan, current.lane) - side * 56, y: current.y - GAP / 2 - ROW / 2 + 3 }, "missing order"));
}

function timelineTable(plan, race) {
  const accessOf = (row) => (row === plan.current ? race.current : row === plan.previous ? race.previous : null);
  return element("table", { className: "words" },
    element("thead", {}, element("tr", {}, ...["Operation", "Stream", "Step", "Line"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...plan.rows.map((row) => {
      const access = accessOf(row);
      return element("tr", { className: access ? "access" : "" },
        element("td", {}, row.step.kind === "work" ? countText(row.step.number) : ""),
        element("td", {}, plan.lanes[row.lane].name),
        element("td", {}, stepWords(row, plan) + (row.step.own ? ", made by tcuda" : "") + (access ? `, ${wordsOf(race, access).does}` : "")),
        element("td", {}, placeText(row.step.site)));
    })));
}
