// The filter of all views: a text that a stack or its scope must have, and "still allocated at the end".

const filter = (() => {
  const state = { text: "", alive: false };
  const listeners = [];
  let hasText = null; // for each frame, whether its function or file has the text
  let text = "";

  function change(changes) {
    Object.assign(state, changes);
    text = state.text.trim().toLowerCase();
    hasText = text ? frames.map(({ name, file, line }) => `${name} ${file}:${line}`.toLowerCase().includes(text)) : null;
    byId("find").value = state.text;
    byId("alive").setAttribute("aria-pressed", String(state.alive));
    for (const listener of listeners) listener();
  }

  byId("find").addEventListener("input", () => change({ text: byId("find").value }));
  byId("alive").addEventListener("click", () => change({ alive: !state.alive }));

  const allowsStack = (stack) => (
    hasText === null || data.stacks[stack].some((frame) => hasText[frame]) || scopeOf(stack).toLowerCase().includes(text)
  );

  return {
    state, change, allowsStack,
    allowsBand: (band) => (!state.alive || band.end === null) && allowsStack(band.stack),
    onChange: (listener) => listeners.push(listener),
  };
})();
