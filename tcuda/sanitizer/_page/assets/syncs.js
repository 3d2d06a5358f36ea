// The lines that made the host wait.

const syncTable = (() => {
  const panel = byId("syncs");

  function start() {
    panel.querySelector("thead tr").replaceChildren(...["Line", "Call", "Times"].map((name) => element("th", { scope: "col" }, name)));
    panel.querySelector("tbody").replaceChildren(...data.syncs.map(([call, file, line, count]) => (
      element("tr", {}, element("td", {}, `${file}:${line}`), element("td", {}, call), element("td", {}, countText(count)))
    )));
    panel.dataset.rows = data.syncs.length;
    const left = data.syncLines - data.syncs.length;
    byId("syncs-note").textContent = data.syncLines
      ? `The host waited ${countOf(data.syncTimes, "time")} in ${countOf(data.syncLines, "line")}.${left ? ` The ${countText(data.syncs.length)} lines that waited most often are shown.` : ""}`
      : "No synchronisation was counted. Count them with --syncs.";
  }

  return { start };
})();
