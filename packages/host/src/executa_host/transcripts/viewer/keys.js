// Moving about by keyboard and click.

function reveal(index, details) {
  for (let up = parents[index]; up >= 0; up = parents[up]) open[up] = 1;
  refresh();
  const position = shown.indexOf(index);
  if (position < 0) return;
  const top = position * ROW;
  if (top < scroll.scrollTop || top + ROW > scroll.scrollTop + scroll.clientHeight) {
    scroll.scrollTop = Math.max(0, top - scroll.clientHeight / 3);
  }
  picked = index;
  if (details || main.classList.contains("open")) showDetails(index);
  draw(false);
}

function fold(index, wanted) {
  open[index] = wanted ? 1 : 0;
  refresh();
}

function step(by) {
  const position = shown.indexOf(picked);
  const next = position < 0 ? 0 : Math.min(Math.max(0, position + by), shown.length - 1);
  if (shown.length) reveal(shown[next], false);
}

function nextError() {
  for (let count = 1; count <= items.length; count++) {
    const index = (Math.max(picked, -1) + count) % items.length;
    if (BAD.has(items[index].status)) return reveal(index, true);
  }
  byId("found").textContent = "Nothing was refused or failed";
}

const TREE_KEYS = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  PageDown: () => step(Math.floor(scroll.clientHeight / ROW)),
  PageUp: () => step(-Math.floor(scroll.clientHeight / ROW)),
  Home: () => step(-items.length),
  End: () => step(items.length),
  Enter: () => picked >= 0 && pick(picked, true),
  " ": () => picked >= 0 && pick(picked, false),
  ArrowRight: () => {
    if (picked < 0 || !hasChildren[picked]) return;
    if (open[picked] || filtering()) step(1);
    else fold(picked, true);
  },
  ArrowLeft: () => {
    if (picked < 0) return;
    if (hasChildren[picked] && open[picked] && !filtering()) fold(picked, false);
    else if (parents[picked] >= 0) reveal(parents[picked], false);
  },
};
const KEYS = {
  "/": () => search.focus(),
  "+": () => zoomBy(0.5),
  "=": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  0: () => zoomTo(0, total),
  e: nextError,
  z: () => {
    if (picked < 0) return;
    const { start, end } = items[picked];
    const margin = Math.max((end - start) * 0.1, total / 2000);
    zoomTo(start - margin, end + margin);
  },
  Escape: () => (main.classList.contains("open") ? closeDetails() : clearFilters()),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select");
  if (typing && event.key !== "Escape") return;
  const inTree = event.target === rows || event.target === document.body;
  const handle = (inTree && TREE_KEYS[event.key]) || KEYS[event.key];
  if (!handle) return;
  event.preventDefault();
  if (typing) rows.focus();
  handle();
});
rows.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (!row || (held && Math.abs(event.clientX - held.x) > 4)) return;
  const index = Number(row.dataset.index);
  if (event.target.closest(".fold") && hasChildren[index]) fold(index, !open[index]);
  else pick(index, false);
});
rows.addEventListener("dblclick", () => KEYS.z());
