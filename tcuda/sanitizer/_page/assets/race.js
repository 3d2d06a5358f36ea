// The chosen race: what is missing, both accesses with their lines, the memory, and the timeline.

const raceView = (() => {
  const article = byId("race");
  let everything = false;
  let drawPicture = () => {};

  const code = (text) => element("code", {}, text);

  /** Return a text whose parts between backquotes are code. */
  const withCode = (text) => text.split("`").map((part, place) => (place % 2 ? code(part) : part));

  function sourceLines(frame, excerpt) {
    const lines = excerpt ? Object.fromEntries(excerpt) : frame && data.sources[frame.file];
    if (!lines) return [];
    const numbers = Object.keys(lines).map(Number).filter((number) => Math.abs(number - frame.line) <= 2);
    if (!numbers.includes(frame.line)) return [];
    return [element("pre", { className: "source" }, ...numbers.map((number) => {
      const line = element("span", { className: number === frame.line ? "here" : "" }, element("i", {}, String(number)), `${lines[number]}\n`);
      if (number === frame.line) line.setAttribute("aria-current", "true");
      return line;
    }))];
  }

  function stackList(stack) {
    return element("ol", { className: "stack" }, ...stackFrames(stack).map(({ name, file, line, user }) => (
      element("li", { className: user ? "user" : "" }, element("b", {}, name), element("span", {}, line ? `${file}:${line}` : file))
    )));
  }

  function fold(title, ...content) {
    return element("details", {}, element("summary", {}, title), ...content);
  }

  const stackFold = (title, stack) => (data.stacks[stack].length ? [fold(title, stackList(stack))] : []);

  function accessCard(title, race, access) {
    const site = accessSite(access);
    const { text, launch } = wordsOf(race, access);
    return element("section", { className: "access" },
      element("h3", {}, title),
      element("p", { className: "what" }, race.kernel ? capital(text) : text), // the name of an operation stays as it is
      element("p", { className: "place" }, site ? `${site.file}:${site.line}` : "unknown line"),
      ...(launch ? [element("p", { className: "place" }, `in the graph launched at ${launch.file}:${launch.line}`)] : []),
      ...sourceLines(site, access.excerpt),
      ...(race.kernel ? [] : stackFold(data.stacks[access.launchStack].length ? "Stack of the capture" : "Stack", access.stack)),
      ...(race.kernel ? [] : stackFold("Stack of the launch", access.launchStack)));
  }

  /** Return the lines of the program that launched the kernel. */
  function launchSection({ current }) {
    const site = launchSite(current);
    return element("section", { id: "launch" },
      element("h3", {}, "Launch"),
      element("p", { className: "place" }, site ? `${site.file}:${site.line}` : "No stack was recorded."),
      ...sourceLines(site),
      ...stackFold(data.stacks[current.launchStack].length ? "Stack of the capture" : "Stack", current.stack),
      ...stackFold("Stack of the launch", current.launchStack));
  }

  /** Return the other races that the missing call mends, as buttons. */
  function others(place) {
    const buttons = racesWithCauseOf(place).filter((other) => other !== place).map((other) => {
      const { current } = data.races[other];
      const button = element("button", { className: "plain" }, `${current.operation} ${placeText(accessSite(current))}`);
      button.addEventListener("click", () => raceList.choose(other));
      return element("li", {}, button);
    });
    return fold(capital(mendsText(data.races[place])), element("ol", { className: "others" }, ...buttons));
  }

  function fixBox({ isSingle, words: { missing } }, place) {
    const where = missing.place ? ` before ${baseName(missing.place.file)}:${missing.place.line}` : "";
    return element("div", { className: "fix" },
      element("h3", {}, isSingle ? "Mend" : "Missing"),
      element("p", {}, ...(missing.call ? [code(missing.call), where] : withCode(missing.sentence))),
      ...(missing.call && missing.says_more ? [element("p", { className: "hint" }, ...withCode(missing.sentence))] : []),
      ...(racesWithCauseOf(place).length > 1 ? [others(place)] : []));
  }

  function memorySection(race) {
    const picture = rangePicture(race);
    const { allocation, freed } = race;
    return element("section", {},
      element("h3", {}, race.isSingle ? "Memory" : "Memory that both touch"),
      ...(picture ? [picture] : []),
      ...(race.words.shared ? [element("p", { className: "what" }, ...withCode(capital(race.words.shared)))] : []),
      ...(race.kernel ? [] : [element("ul", { className: "range" }, ...[race.previous, race.current].map((access) => (
        element("li", {}, `${access.operation}: `, ...withCode(wordsOf(race, access).memory)))))]),
      ...(allocation ? [element("p", { className: "hint" }, `${exactBytesText(allocation.size)} at ${allocation.address}`)] : []),
      ...(allocation ? stackFold(freed ? "Handed out again by" : "Allocated by", allocation.stack) : []),
      ...(freed ? stackFold("Allocated at first by", freed.stack) : []),
      ...(freed ? stackFold("Freed by", freed.freedStack) : []));
  }

  function timelineSection(race) {
    const section = element("section", { id: "timeline" });
    const scroller = element("div", { className: "scroller", tabIndex: 0, role: "group", "aria-label": "Timeline" });
    drawPicture = () => {
      const plan = layOut(race, everything, scroller.clientWidth);
      scroller.replaceChildren(laneNames(plan), timelinePicture(race, plan));
    };
    const draw = () => {
      const plan = layOut(race, everything, scroller.clientWidth);
      const choice = element("input", { type: "checkbox", checked: everything });
      choice.addEventListener("change", () => { everything = choice.checked; draw(); section.querySelector("input")?.focus(); });
      drawPicture();
      section.dataset.rows = plan.rows.length;
      section.dataset.lanes = plan.lanes.length;
      section.dataset.edges = plan.edges.length;
      section.replaceChildren(
        element("h3", {}, "Timeline"),
        element("p", { className: "hint" }, "Time goes down. An arrow is an order that the program made; the dashed arrow is missing."),
        ...(plan.others ? [element("label", {}, choice, " all streams and events")] : []),
        scroller,
        fold("The timeline in words", timelineTable(plan, race)),
      );
    };
    draw();
    return section;
  }

  function show(place) {
    const race = data.races[place];
    article.dataset.place = place;
    article.replaceChildren(
      element("h2", { id: "race-title" }, raceTitle(race), ...(race.useAfterFree ? [element("small", {}, race.kind)] : []),
        ...(race.count > 1 ? [element("small", {}, `${countText(race.count)} times`)] : [])),
      ...(race.words.doubt ? [element("p", { className: "doubt" }, ...withCode(race.words.doubt))] : []),
      fixBox(race, place),
      element("div", { className: "accesses" },
        ...(race.isSingle ? [accessCard("Read", race, race.current)] : [accessCard("First", race, race.previous), accessCard("Second", race, race.current)])),
      race.kernel ? launchSection(race) : timelineSection(race),
      memorySection(race),
    );
    if (!race.kernel) drawPicture(); // now the width is known
    const timeline = byId("timeline")?.querySelector(".scroller");
    if (timeline) timeline.scrollTop = timeline.scrollHeight;
    article.scrollTop = 0;
  }

  function nothing() {
    article.replaceChildren(element("h2", { id: "race-title" }, "No race"),
      element("p", {}, `The detector looked at ${countOf(data.operations, "operation")}.`));
  }

  new ResizeObserver(() => setTimeout(drawPicture)).observe(article); // later, because the picture may change the article
  return { show, nothing };
})();
