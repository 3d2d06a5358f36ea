// The data of the page, as objects. An index of a band, a site or a stack is an index into the lists here.

const data = JSON.parse(byId("data").textContent);

const frames = data.frames.map(([name, file, line, user]) => ({
  name: data.texts[name], file: data.texts[file], line, user: Boolean(user),
}));

const stackFrames = (stack) => data.stacks[stack].map((frame) => frames[frame]);

/** Return the scope of memory in which a stack allocated; an empty text outside of all scopes. */
const scopeOf = (stack) => (data.scopes.length ? data.scopes[data.scopeOfStack[stack]] : "");

const HUES = 10;

/** Return the colour of a site. Each of the first ten sites has its own colour; later sites share paler colours. */
function siteColour(site) {
  if (site.frame === null) return { name: "unknown", alpha: 1 };
  return { name: `hue-${site.hue % HUES}`, alpha: site.hue < HUES ? 1 : 0.55 };
}

/** Return the name of a site in one line: the function, and the file without its folder with the line. */
function siteName(frame) {
  if (frame === null) return { name: "no stack recorded", place: "" };
  const { name, file, line } = frames[frame];
  return { name, place: line ? `${baseName(file)}:${line}` : baseName(file) };
}

const siteText = (frame) => Object.values(siteName(frame)).filter(Boolean).join("  ");

const NO_SITE = { frame: null };

/** Return the site that allocated a block. A trace that lost its first events does not have all sites. */
const siteOfBlock = (device, block) => device.siteOfFrame.get(data.siteOfStack[block.stack]) ?? NO_SITE;

function sums(values) {
  let sum = 0;
  return Float64Array.from(values, (value) => (sum += value));
}

const usage = ([atPeak, atEnd, alive, count, total]) => ({ atPeak, atEnd, alive, count, total });

function unpackSite([frame, ...rest]) {
  const stacks = rest.pop();
  return { frame, ...usage(rest), stacks: stacks.map(([stack, ...sums]) => ({ stack, ...usage(sums) })) };
}

function unpackBand([address, size, stream, stack, start, released, end, freedBy, note], siteOfFrame) {
  const site = siteOfFrame.get(data.siteOfStack[stack]);
  return { address, size, stream, stack, start, released, end, freedBy, note, site, colour: siteColour(site) };
}

function unpackSegment([address, size, kind, expandable, stack, blocks], group) {
  const segment = { address, size, kind, expandable: Boolean(expandable), stack, group };
  segment.blocks = blocks.map(([address, offset, size, requested, state, stack]) => (
    { address, offset, size, requested, state, stack, segment }
  ));
  return segment;
}

function unpackGroup(packed) {
  const group = { ...packed, bytes: [0, 0, 0] };
  group.segments = packed.segments.map((segment) => unpackSegment(segment, group));
  for (const segment of group.segments) for (const block of segment.blocks) group.bytes[block.state] += block.size;
  group.reserved = group.segments.reduce((sum, segment) => sum + segment.size, 0);
  return group;
}

function unpackDevice(packed) {
  const sites = packed.sites.map(unpackSite);
  sites.filter((site) => site.frame !== null).forEach((site, hue) => { site.hue = hue; });
  const siteOfFrame = new Map(sites.map((site) => [site.frame, site]));
  const columns = unpackColumns(packed);
  const live = liveOf(columns, packed.events);
  const groups = packed.groups.map(unpackGroup);
  return {
    ...packed, columns, live, sites, groups, siteOfFrame,
    times: columns.times,
    bands: packed.bands.map((band) => unpackBand(band, siteOfFrame)),
    reservedPeak: packed.reserved.reduce((most, [, bytes]) => Math.max(most, bytes), 0),
    peakBytes: live[packed.peak],
    endBytes: live[packed.events],
    segmentCount: groups.reduce((sum, group) => sum + group.segments.length, 0),
    blockCount: groups.reduce((sum, group) => group.segments.reduce((sum, segment) => sum + segment.blocks.length, sum), 0),
  };
}

const deviceAt = (() => {
  const unpacked = [];
  return (position) => (unpacked[position] ??= unpackDevice(data.devices[position]));
})();
