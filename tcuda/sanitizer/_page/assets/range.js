// The memory of a race: the allocation, the view of each access, and the bytes that both touch.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a picture. The style sheet has the colours. */
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Return a picture of the bytes in the allocation: a bar for each view, and a bar for what both touch. */
function rangePicture(race) {
  const { allocation, overlap } = race;
  if (!allocation || !overlap || !(allocation.size > 0)) return null;
  const WIDTH = 1000;
  const part = (name, [offset, size]) => {
    const [left, right] = [offset, offset + size].map((place) => Math.max(0, Math.min(WIDTH, (place / allocation.size) * WIDTH)));
    const width = Math.max(right - left, 3);
    return shape("rect", { class: name, x: Math.min(left, WIDTH - width), y: 0, width, height: 12 });
  };
  const row = (name, ...parts) => element("div", { className: "bar" }, element("span", {}, name),
    shape("svg", { viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: "none", "aria-hidden": "true" }, shape("rect", { class: "allocation", x: 0, y: 0, width: WIDTH, height: 12 }), ...parts));
  const views = [race.previous, race.current].filter((access) => access.extent);
  return element("div", {
    className: "memory", role: "img",
    "aria-label": `Bytes ${countText(overlap[0])} to ${countText(overlap[0] + overlap[1] - 1)} of ${exactBytesText(allocation.size)}`,
  },
  ...views.map((access) => row(access.operation, part(access.extent[2] < access.extent[1] ? "view gaps" : "view", access.extent))),
  row("both", part("overlap", overlap)));
}
