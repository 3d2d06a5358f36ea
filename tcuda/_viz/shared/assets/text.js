"use strict";

// An error is shown on the page, so that no reader takes an incomplete page for a complete one.
window.addEventListener("error", (event) => {
  const note = document.getElementById("error");
  note.textContent = `This page is incomplete: ${event.message} (line ${event.lineno}).`;
  note.hidden = false;
});

const byId = (id) => document.getElementById(id);

/** Make an element. A string child becomes text and is never read as HTML. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

/** Return bytes with three digits, in the largest unit in which the number is 1 or more. */
function bytesText(bytes) {
  const [unit, scale] = UNITS.find(([, scale]) => bytes >= scale) ?? ["B", 1];
  const value = bytes / scale;
  const digits = scale === 1 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

const countText = (count) => count.toLocaleString("en");

const countOf = (count, noun) => `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;

function exactBytesText(bytes) {
  return bytes < 1024 ? `${bytes} B` : `${bytesText(bytes)} (${countText(bytes)} B)`;
}

function durationText(microseconds) {
  const [unit, scale] = [["s", 1e6], ["ms", 1e3]].find(([, scale]) => Math.abs(microseconds) >= scale) ?? ["µs", 1];
  const value = microseconds / scale;
  return `${value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 && scale > 1 ? 2 : 1 })} ${unit}`;
}

const percentText = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "0 %");

const baseName = (path) => path.split(/[/\\]/).pop();

const streamText = (stream) => (stream === "0x0" ? "default stream" : `stream ${stream}`);
