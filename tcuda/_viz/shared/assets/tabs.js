// Tabs. The chosen tab shows its view.

/**
 * Make the buttons `tab-NAME` show the elements `NAME`. A click and the arrow keys call `show` with a name.
 * Return the function that marks a tab as chosen.
 */
function startTabs(names, show) {
  const tabs = names.map((name) => byId(`tab-${name}`));
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => show(names[index]));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      let next = index;
      do next = (next + by + names.length) % names.length; while (tabs[next].hidden);
      show(names[next]);
      tabs[next].focus();
    });
  });
  return (name) => names.forEach((other, index) => {
    byId(other).hidden = other !== name;
    tabs[index].setAttribute("aria-selected", String(other === name));
    tabs[index].tabIndex = other === name ? 0 : -1;
  });
}
