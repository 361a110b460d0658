// Time: which part of it the lanes show, its axis, and the overview of the whole.

const overview = byId("overview");
const canvas = overview.querySelector("canvas");
const frame = byId("window");

function zoomTo(from, to) {
  const least = Math.max(total / 5e6, 1e-6);
  const span = Math.min(Math.max(to - from, least), total);
  const start = Math.min(Math.max(0, from), total - span);
  view = { from: start, to: start + span };
  drawAxis();
  draw(false);
}

function zoomBy(factor, around) {
  const middle = around === undefined ? (view.from + view.to) / 2 : around;
  zoomTo(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
}

function lane() {
  const box = rows.getBoundingClientRect();
  const some = rows.querySelector(".lane");
  const edge = some ? some.getBoundingClientRect() : box;
  return { left: edge.left, width: Math.max(1, edge.width) };
}

function timeAt(x) {
  const edge = lane();
  return view.from + ((x - edge.left) / edge.width) * (view.to - view.from);
}

function drawAxis() {
  axis.textContent = "";
  const span = view.to - view.from;
  const edge = lane();
  const left = edge.left - axis.getBoundingClientRect().left;
  const rough = span / Math.max(1, Math.floor(edge.width / 90));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step))));
  for (let count = Math.ceil(view.from / step); count * step <= view.to; count++) {
    const tick = element("span", "", `${(count * step).toFixed(digits)} s`);
    tick.style.left = `${left + ((count * step - view.from) / span) * edge.width}px`;
    axis.append(tick);
  }
  frame.style.left = `${(view.from / total) * 100}%`;
  frame.style.width = `${(span / total) * 100}%`;
  frame.hidden = span >= total;
}

function drawOverview() {
  const ratio = window.devicePixelRatio || 1;
  const width = (canvas.width = Math.max(1, Math.round(overview.clientWidth * ratio)));
  const height = (canvas.height = Math.max(1, Math.round(overview.clientHeight * ratio)));
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const lanes = { process: [0.08, 0.1], action: [0.2, 0.1], invoke: [0.34, 0.18] };
  Object.assign(lanes, { reverse: [0.56, 0.14], tool: [0.74, 0.1] });
  context.clearRect(0, 0, width, height);
  for (const item of items) {
    const where = lanes[item.kind];
    if (!where && !BAD.has(item.status)) continue;
    const [top, tall] = where || [0.88, 0.08];
    context.fillStyle = colour(BAD.has(item.status) ? "--bad" : `--${item.kind}`);
    const long = ((item.end - item.start) / total) * width;
    context.fillRect((item.start / total) * width, top * height, Math.max(ratio, long), tall * height);
  }
}

function dragging(target, begin, move, end) {
  target.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !begin(event)) return;
    const moved = (next) => move(next);
    const done = (next) => {
      window.removeEventListener("pointermove", moved);
      window.removeEventListener("pointerup", done);
      window.removeEventListener("pointercancel", done);
      if (end) end(next);
    };
    window.addEventListener("pointermove", moved);
    window.addEventListener("pointerup", done);
    window.addEventListener("pointercancel", done);
  });
}

let grip = null;
dragging(
  overview,
  (event) => {
    const box = overview.getBoundingClientRect();
    grip = { at: ((event.clientX - box.left) / box.width) * total, box };
    return true;
  },
  (event) => {
    const at = ((event.clientX - grip.box.left) / grip.box.width) * total;
    if (Math.abs(at - grip.at) > total / 500) zoomTo(Math.min(at, grip.at), Math.max(at, grip.at));
  },
);
let held = null;
dragging(
  rows,
  (event) => {
    held = event.target.closest(".lane") ? { x: event.clientX, view: { ...view } } : null;
    return held !== null;
  },
  (event) => {
    const shift = ((held.x - event.clientX) / lane().width) * (held.view.to - held.view.from);
    zoomTo(held.view.from + shift, held.view.to + shift);
  },
);
scroll.addEventListener(
  "wheel",
  (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.clientX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const shift = ((event.deltaX || event.deltaY) / lane().width) * (view.to - view.from);
      zoomTo(view.from + shift, view.to + shift);
    }
  },
  { passive: false },
);
