// The data of the page, as objects. An index of a stack or an event is an index into the lists here.

const data = JSON.parse(byId("data").textContent);

const frames = data.frames.map(([name, file, line, user]) => ({
  name: data.texts[name], file: data.texts[file], line, user: Boolean(user),
}));

const stackFrames = (stack) => data.stacks[stack].map((frame) => frames[frame]);

/** Return the frame of a stack that is the user's own code; null for an empty stack. */
const siteOf = (stack) => (data.siteOfStack[stack] === null ? null : frames[data.siteOfStack[stack]]);

const placeText = (frame) => (frame === null ? "unknown line" : `${baseName(frame.file)}:${frame.line}`);

const steps = data.events.map(([number, device, stream, kind, name, event, wholeDevice, file, line, own]) => ({
  number, device, stream, kind, name, event, wholeDevice, own, site: file === null ? null : { file, line },
}));

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const raceTitle = (race) => capital(race.words.title.replaceAll("`", ""));

/** Return what both accesses do, in words; a finding of one access has the same words for both. */
const wordsOf = (race, access) => race.words.sides.at(access === race.previous ? 0 : -1);

const causes = new Map();

const causeKey = (place) => data.races[place].cause ?? -1 - place; // a race without a cause is a cause of its own

for (const place of data.races.keys()) causes.set(causeKey(place), [...(causes.get(causeKey(place)) ?? []), place]);

/** Return the places of the races that one call mends, the race to mend first at the front. */
const racesWithCauseOf = (place) => causes.get(causeKey(place));

/** Return what one call mends, in words; null if the call mends this race only. */
const mendsText = (race) => (race.cause === null ? null : data.causes[race.cause - 1]);

const isHost = (thing) => thing.device < 0;

/** Return the name of the stream of an access, as the program calls the stream. */
function streamOf(access) {
  if (isHost(access)) return "the host";
  return access.streamName || streamText(access.stream);
}

/** Return the line of the program of an access: in a graph, the line that was captured, if it is known. */
const launchSite = (access) => siteOf(access.stack) ?? siteOf(access.launchStack);

/** Return the line of an access: in a race inside a kernel, the line of the kernel, if it is known. */
const accessSite = (access) => access.line ?? launchSite(access);
