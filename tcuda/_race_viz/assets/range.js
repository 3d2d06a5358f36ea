// The memory of a race: the allocation, the view of each access, and the bytes that both touch.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a picture. The style sheet has the colours. */
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Return the words for the elements of a view that both accesses touch. */
function elementsText({ elements, isBytes, shape }) {
  const noun = isBytes ? "byte" : "element";
  const whole = shape?.length ? ` of ${shape.map(countText).join(" × ")}` : "";
  if (!elements) return `some ${noun}s${whole}`;
  const [first, last] = elements;
  return (first === last ? `${noun} ${countText(first)}` : `${noun}s ${countText(first)} to ${countText(last)}`) + whole;
}

/** Return the words for the memory that both accesses touch. */
const rangeWords = (race) => [race.previous, race.current].map((access) => `${access.operation}: ${elementsText(access)}`);

/** Return a picture of bytes in an allocation; null without an allocation. */
function rangePicture(race) {
  const { allocation, overlap } = race;
  if (!allocation || !overlap || !(allocation.size > 0)) return null;
  const WIDTH = 1000;
  const scale = WIDTH / allocation.size;
  const bar = (name, y, height, [offset, size], title) => {
    const left = Math.max(0, Math.min(WIDTH, offset * scale));
    const right = Math.max(0, Math.min(WIDTH, (offset + size) * scale));
    const width = Math.max(right - left, 3);
    return shape("rect", { class: name, x: Math.min(left, WIDTH - width), y, width, height }, shape("title", {}, title));
  };
  const rows = [race.previous, race.current].filter((access) => access.extent);
  const top = rows.length * 16;
  return shape("svg", {
    class: "memory", viewBox: `0 0 ${WIDTH} ${top + 22}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Bytes ${countText(overlap[0])} to ${countText(overlap[0] + overlap[1] - 1)} of ${exactBytesText(allocation.size)}`,
  },
  ...rows.map((access, row) => (
    bar(`view${access.extent[2] < access.extent[1] ? " gaps" : ""}`, row * 16, 11, access.extent, `${access.operation} ${VERBS[access.kind]} ${argumentText(access)}`)
  )),
  shape("rect", { class: "allocation", x: 0, y: top, width: WIDTH, height: 22 }),
  bar("overlap", top, 22, overlap, "both accesses"),
  ...rows.map((access, row) => bar("overlap", row * 16, 11, overlap, "both accesses")));
}
