// The items, the tree they make, and which of them are shown.

const data = JSON.parse(document.getElementById("data").textContent);
const items = data.items;
const byId = (id) => document.getElementById(id);
const ROW = 26;
const FEW = 60; // items that are all shown at first; of more only the outermost
const MANY = 3000; // items from which a search waits until the typing pauses
const MARKS = { ok: "✓", refused: "⊘", failed: "✗", open: "…", "": "" };
const BAD = new Set(["refused", "failed"]);
const total = Math.max(data.seconds, 1e-6);

// --- The tree, from depths --------------------------------------------------------------

const parents = new Int32Array(items.length).fill(-1);
const hasChildren = new Uint8Array(items.length);
const open = new Uint8Array(items.length).fill(items.length > FEW ? 0 : 1);
{
  const path = [];
  items.forEach((item, index) => {
    path.length = item.depth;
    if (item.depth > 0) {
      parents[index] = path[item.depth - 1];
      hasChildren[parents[index]] = 1;
    }
    path[item.depth] = index;
  });
}

let shown = []; // indexes of the rows, from top to bottom
let picked = -1;
let query = null;
let view = { from: 0, to: total };

function matches(item) {
  if (plugin.value && item.plugin !== plugin.value) return false;
  if (onlyErrors() && !BAD.has(item.status)) return false;
  if (!query) return true;
  return (
    query.test(item.label) || query.test(item.detail) || query.test(item.invoke) ||
    item.rows.some((row) => query.test(data.lines[row] || ""))
  );
}

function filtering() {
  return Boolean(query || plugin.value || onlyErrors());
}

function refresh() {
  let hits = 0;
  if (filtering()) {
    const keep = new Uint8Array(items.length);
    for (let index = items.length - 1; index >= 0; index--) {
      if (matches(items[index])) {
        hits++;
        keep[index] = 1;
      }
      if (keep[index] && parents[index] >= 0) keep[parents[index]] = 1;
    }
    shown = [];
    for (let index = 0; index < items.length; index++) if (keep[index]) shown.push(index);
  } else {
    shown = [];
    let closedAt = Infinity;
    items.forEach((item, index) => {
      if (item.depth > closedAt) return;
      closedAt = open[index] || !hasChildren[index] ? Infinity : item.depth;
      shown.push(index);
    });
  }
  byId("found").textContent = filtering()
    ? `${hits.toLocaleString()} of ${items.length.toLocaleString()} items match`
    : `${shown.length.toLocaleString()} of ${items.length.toLocaleString()} items shown`;
  rows.style.height = `${shown.length * ROW}px`;
  draw(true);
}
