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

  function accessCard(title, access) {
    const site = accessSite(access);
    if (access.words) return kernelCard(title, access);
    const launch = siteOf(access.launchStack);
    return element("section", { className: "access" },
      element("h3", {}, title),
      element("p", { className: "what" }, element("b", {}, access.operation), ` ${VERBS[access.kind]} `, code(argumentText(access)), " on ", code(streamOf(access)),
        !isHost(access) && deviceCount() > 1 ? `, device ${access.device}` : ""),
      element("p", { className: "place" }, site ? `${site.file}:${site.line}` : "No stack was recorded."),
      ...(launch ? [element("p", { className: "place" }, `in the graph launched at ${launch.file}:${launch.line}`)] : []),
      ...sourceLines(site),
      ...stackFold(data.stacks[access.launchStack].length ? "Stack of the capture" : "Stack", access.stack),
      ...stackFold("Stack of the launch", access.launchStack));
  }

  /** Return the card of an access of one thread of a kernel. */
  function kernelCard(title, access) {
    return element("section", { className: "access" },
      element("h3", {}, title),
      element("p", { className: "what" }, capital(access.words)),
      element("p", { className: "place" }, access.line ? `${access.line.file}:${access.line.line}` : "The line is not known."),
      ...sourceLines(access.line, access.excerpt));
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

  function deviceCount() {
    return new Set(data.races.flatMap((race) => [race.previous.device, race.current.device]).filter((device) => device >= 0)).size;
  }

  function fixBox(race) {
    const [file, line] = race.before ?? [];
    const where = race.before ? ` before ${baseName(file)}:${line}` : "";
    // The usual sentence says no more than the call and the line.
    const saysMore = race.advice && !(race.advice.startsWith(`\`${race.missing}\` before `) && /:? (line \d+ of \S+|cell \[\d+\], line \d+) orders them\.$/.test(race.advice));
    return element("div", { className: "fix" },
      element("h3", {}, race.isSingle ? "Mend" : "Missing"),
      element("p", {}, ...(race.missing ? [code(race.missing), where] : (race.advice ? withCode(race.advice) : ["No order leads from the first access to the second."]))),
      ...(race.missing && saysMore ? [element("p", { className: "hint" }, ...withCode(race.advice))] : []));
  }

  function memorySection(race) {
    const picture = rangePicture(race);
    const { allocation, freed } = race;
    return element("section", {},
      element("h3", {}, race.isSingle ? "Memory" : "Memory that both touch"),
      ...(picture ? [picture] : []),
      ...(race.memory ? [element("p", { className: "what" }, ...withCode(race.memory))]
        : [element("ul", { className: "range" }, ...rangeWords(race).map((words) => element("li", {}, words)))]),
      ...(allocation ? [element("p", { className: "hint" }, `${exactBytesText(allocation.size)} at ${allocation.address}`)] : []),
      ...(allocation ? stackFold(freed ? "Handed out again by" : "Allocated by", allocation.stack) : []),
      ...(freed ? stackFold("Allocated at first by", freed.stack) : []),
      ...(freed ? stackFold("Freed by", freed.freedStack) : []));
  }

  function timelineSection(race) {
    const section = element("section", { id: "timeline" });
    const scroller = element("div", { className: "scroller", tabIndex: 0, role: "group", "aria-label": "Timeline" });
    drawPicture = () => scroller.replaceChildren(timelinePicture(race, layOut(race, everything, scroller.clientWidth)));
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
        ...(plan.others ? [element("label", {}, choice, " all streams")] : []),
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
      ...(race.doubt ? [element("p", { className: "doubt" }, ...withCode(race.doubt))] : []),
      fixBox(race),
      element("div", { className: "accesses" },
        ...(race.isSingle ? [accessCard("Read", race.current)] : [accessCard("First", race.previous), accessCard("Second", race.current)])),
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
