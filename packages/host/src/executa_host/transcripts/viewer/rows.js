// Rows: only those in sight are in the document, so a hundred thousand items scroll as ten do.

const scroll = byId("scroll");
const rows = byId("rows");
const axis = byId("axis");
const live = new Map(); // by index of the item

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function took(item) {
  const ms = (item.end - item.start) * 1000;
  if (!(ms > 0)) return "";
  return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(1)} ms`;
}

function makeRow(index) {
  const item = items[index];
  const row = element("div", `row k-${item.kind} s-${item.status || "none"}`);
  row.id = `item-${index}`;
  row.dataset.index = index;
  row.dataset.kind = item.kind;
  row.setAttribute("role", "treeitem");
  row.setAttribute("aria-level", item.depth + 1);
  if (!(item.end > item.start)) row.classList.add("instant");
  const name = element("div", "name");
  name.style.paddingLeft = `${8 + 16 * item.depth}px`;
  const fold = element("span", "fold");
  const label = element("span", "label");
  const detail = element("span", "detail");
  fill(label, (item.arrow ? `${item.arrow} ` : "") + item.label);
  fill(detail, item.detail);
  name.append(fold, element("span", "mark", MARKS[item.status]), label, detail);
  name.append(element("span", "took", took(item)));
  const lane = element("div", "lane");
  lane.append(element("div", "bar"));
  row.append(name, lane);
  row.title = `${item.label}  ${item.start.toFixed(3)} s  ${took(item)}  ${item.status}`;
  return row;
}

function fill(target, text) {
  target.textContent = "";
  let rest = text;
  let at;
  while (query && (at = query.exec(rest)) && at[0]) {
    target.append(rest.slice(0, at.index), element("mark", "", at[0]));
    rest = rest.slice(at.index + at[0].length);
  }
  target.append(rest);
}

function draw(anew) {
  if (anew) {
    live.forEach((row) => row.remove());
    live.clear();
  }
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - 8);
  const last = Math.min(shown.length, first + Math.ceil(scroll.clientHeight / ROW) + 16);
  const wanted = new Set();
  for (let position = first; position < last; position++) {
    const index = shown[position];
    wanted.add(index);
    let row = live.get(index);
    if (!row) {
      row = makeRow(index);
      live.set(index, row);
      rows.append(row);
    }
    row.style.top = `${position * ROW}px`;
    row.setAttribute("aria-posinset", position + 1);
    row.setAttribute("aria-setsize", shown.length);
    row.classList.toggle("pick", index === picked);
    row.setAttribute("aria-selected", index === picked);
    const fold = row.querySelector(".fold");
    if (hasChildren[index]) {
      const isOpen = filtering() || Boolean(open[index]);
      fold.textContent = isOpen ? "▾" : "▸";
      row.setAttribute("aria-expanded", isOpen);
    }
    place(row, items[index]);
  }
  live.forEach((row, index) => {
    if (!wanted.has(index)) {
      row.remove();
      live.delete(index);
    }
  });
  let empty = rows.querySelector(".empty");
  if (!shown.length && !empty) rows.append(element("p", "empty", "Nothing matches."));
  if (shown.length && empty) empty.remove();
  if (picked >= 0 && live.has(picked)) rows.setAttribute("aria-activedescendant", `item-${picked}`);
  else rows.removeAttribute("aria-activedescendant");
}

function place(row, item) {
  const bar = row.lastChild.firstChild;
  const span = view.to - view.from;
  const left = Math.max(-1, (item.start - view.from) / span);
  const right = Math.min(2, (item.end - view.from) / span);
  bar.hidden = right < 0 || left > 1;
  bar.style.left = `${left * 100}%`;
  if (item.end > item.start) bar.style.width = `${Math.max(0, right - left) * 100}%`;
}
