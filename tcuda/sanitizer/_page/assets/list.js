// The list of races. The arrow keys go from race to race.

const raceList = (() => {
  const FIRST = 200;
  const list = byId("list");
  let chosen = null;
  let showAll = false;
  let show = () => {};

  const texts = data.races.map((race) => (
    [race.previous, race.current].flatMap((access) => [
      access.operation, access.argument, streamOf(access), ...stackFrames(access.stack).flatMap(({ name, file }) => [name, file]),
      wordsOf(race, access).text, ...(access.excerpt ?? []).map(([, text]) => text),
    ]).concat(race.kind, race.words.shared ?? "", raceTitle(race)).join("\n").toLowerCase()
  ));

  function found() {
    const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [...causes.values()].map(([first]) => first);
    return texts.flatMap((text, place) => (words.every((word) => text.includes(word)) ? [place] : []));
  }

  function row(place) {
    const race = data.races[place];
    const line = (access) => element("span", {}, `${race.kernel ? wordsOf(race, access).text : access.operation} `, element("em", {}, placeText(accessSite(access))));
    const button = element("button", { className: race.useAfterFree ? "freed" : "" },
      element("b", {}, raceTitle(race)),
      ...(race.count > 1 ? [element("i", { className: "times" }, `${countText(race.count)} times`)] : []),
      ...(race.isSingle ? [] : [line(race.previous)]), line(race.current),
      ...(mendsText(race) && racesWithCauseOf(place)[0] === place ? [element("i", { className: "mends" }, mendsText(race))] : []));
    button.dataset.place = place;
    if (place === chosen) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(place));
    return element("li", {}, button);
  }

  function draw() {
    const places = found();
    const drawn = showAll ? places : places.slice(0, FIRST);
    list.replaceChildren(...drawn.map(row));
    list.dataset.rows = drawn.length;
    const more = byId("all-races");
    more.hidden = drawn.length === places.length;
    more.textContent = `Show all ${countText(places.length)}`;
    const noun = data.unwritten ? "finding" : "race";
    byId("list-note").textContent = [
      places.length === data.races.length ? countOf(places.length, noun)
        : byId("find").value.trim() ? `${countText(places.length)} of ${countOf(data.races.length, noun)}`
          : `${countOf(places.length, "cause")} of ${countOf(data.races.length, noun)}`,
      data.found > data.races.length && `the first of ${countText(data.found)}; the JSON has all`,
    ].filter(Boolean).join(", ");
  }

  function choose(place) {
    chosen = place;
    for (const button of list.querySelectorAll("button")) {
      if (Number(button.dataset.place) === place) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    show(place);
  }

  function start(shown, first) {
    show = shown;
    chosen = first;
    draw();
    byId("find").addEventListener("input", draw);
    byId("all-races").addEventListener("click", () => { showAll = true; draw(); });
    list.addEventListener("keydown", (event) => {
      const buttons = [...list.querySelectorAll("button")];
      const here = buttons.indexOf(document.activeElement);
      const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (next === undefined || here < 0 || !buttons[next]) return;
      event.preventDefault();
      buttons[next].focus();
      choose(Number(buttons[next].dataset.place));
    });
    if (data.races.length) choose(first);
  }

  return { start, choose };
})();
