// The views, and the figures at the top.

const VIEWS = ["races", "syncs"];

const page = (() => {
  const choose = startTabs(VIEWS, showView);
  let view = VIEWS[0];
  let place = 0;

  function showView(name) {
    view = name;
    choose(name);
    remember();
  }

  function showRace(chosen) {
    place = chosen;
    raceView.show(chosen);
    remember();
  }

  /** Store the view and the race in the address, so that a reload or a link shows the same race. */
  function remember() {
    try {
      history.replaceState(null, "", `#${view}/${place + 1}`);
    } catch {
      // A viewer that shows the page in a frame may refuse a change of the address.
    }
  }

  function showTotals() {
    const races = data.found - data.unwritten - data.possible;
    const totals = [
      ["races", "Races", countText(races)],
      data.unwritten && ["unwritten", "Unwritten reads", countText(data.unwritten)],
      data.possible && ["possible", "Possible", countText(data.possible)],
      ["times", "Times", countText(data.times)],
      ["operations", "Operations", countText(data.operations)],
      data.suppressed && ["suppressed", "Suppressed", countText(data.suppressed)],
      data.syncTimes && ["syncs", "Host waited", countText(data.syncTimes)],
    ].filter(Boolean);
    byId("totals").replaceChildren(...totals.map(([id, name, value]) => (
      element("div", {}, element("dt", {}, name), element("dd", { id: `total-${id}` }, value))
    )));
    byId("subtitle").textContent = data.program?.failure
      ? `The program failed: ${data.program.failure}`
      : data.unwritten && data.unwritten === data.found ? "Reads of memory that nothing has written" : "Operations on the same memory that no wait orders";
    const unwritten = data.unwritten ? `, ${countOf(data.unwritten, "read")} of unwritten memory` : "";
    document.title = `${data.title}: ${countOf(races, "race")}${unwritten}`;
  }

  function start() {
    const [, wantedView, wantedRace] = location.hash.match(/^#(\w+)\/(\d+)$/) ?? [];
    const first = Math.min(Math.max(Number(wantedRace ?? 1), 1), Math.max(data.races.length, 1)) - 1;
    showTotals();
    syncTable.start();
    byId("tab-syncs").hidden = !data.syncLines;
    if (data.races.length) raceList.start(showRace, first);
    else raceView.nothing();
    byId("find").parentElement.hidden = byId("list").parentElement.hidden = !data.races.length;
    showView(wantedView === "syncs" && data.syncLines ? "syncs" : "races");
    document.documentElement.dataset.ready = "true";
  }

  return { start };
})();

page.start();
