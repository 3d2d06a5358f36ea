// Helpers of all pictures: the colours of the theme, a canvas as sharp as the screen, round numbers on the axes.

function themeColours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

const canvasFont = (size = 12) => `${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;

/** Fit a canvas to its place on the page and clear it. Its coordinates are CSS pixels. */
function freshCanvas(canvas, width = canvas.clientWidth, height = canvas.clientHeight) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return { context, width, height, ratio };
}

function ticks(low, high, step) {
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value + 0); // turns -0 into 0
  return found;
}

/** Return ticks whose step is 1, 2 or 5 times a power of ten. */
function decimalTicks(low, high, count, smallest) {
  const rough = Math.max((high - low) / count, smallest);
  const power = 10 ** Math.floor(Math.log10(rough));
  return ticks(low, high, Math.max(smallest, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power));
}

/** Return ticks whose step is a power of two, which is round in KiB, MiB and GiB. */
const byteTicks = (low, high, count) => ticks(low, high, 2 ** Math.ceil(Math.log2(Math.max((high - low) / count, 1))));

const tickText = (bytes) => (bytes ? bytesText(bytes).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ") : "0");

/** Return a function that requests `work` before the next frame; several requests lead to one call. */
function soon(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; work(); });
  };
}
