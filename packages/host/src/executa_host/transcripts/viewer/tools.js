// The tools in the head, and how everything begins.

const search = byId("search");
const plugin = byId("plugin");
const errors = byId("errors");

function onlyErrors() {
  return errors.getAttribute("aria-pressed") === "true";
}

function clearFilters() {
  search.value = "";
  plugin.value = "";
  query = null;
  errors.setAttribute("aria-pressed", "false");
  refresh();
}

let pause = 0;
search.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    const text = search.value.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    query = text ? new RegExp(text, "i") : null;
    scroll.scrollTop = 0;
    refresh();
  }, items.length > MANY ? 180 : 0);
});
plugin.addEventListener("change", refresh);
errors.addEventListener("click", () => {
  errors.setAttribute("aria-pressed", !onlyErrors());
  refresh();
});
byId("in").addEventListener("click", () => zoomBy(0.5));
byId("out").addEventListener("click", () => zoomBy(2));
byId("fit").addEventListener("click", () => zoomTo(0, total));
byId("expand").addEventListener("click", () => (open.fill(1), refresh()));
byId("collapse").addEventListener("click", () => (open.fill(0), refresh()));
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  drawOverview();
});

// --- At first ---------------------------------------------------------------------------------

byId("name").textContent = data.file;
const when = new Date(data.at * 1000).toISOString().replace("T", " ").slice(0, 19);
byId("about").textContent = [`${when} UTC`, data.host, data.command].filter(Boolean).join(" · ");
const names = { processes: "processes", actions: "actions", invokes: "invokes" };
Object.assign(names, { reverse_calls: "reverse calls", refused: "refused", failed: "failed", frames: "frames" });
for (const [name, words] of Object.entries(names)) {
  const count = data.totals[name];
  if (!count && name !== "invokes") continue;
  const total = element("li", BAD.has(name) ? "bad" : "");
  total.append(element("b", "", count.toLocaleString()), ` ${words}`);
  byId("totals").append(total);
}
const length = element("li");
length.append(element("b", "", data.seconds.toFixed(3)), " s");
byId("totals").append(length);
const remarks = byId("remarks");
remarks.textContent = data.remarks.join("\n");
remarks.hidden = !data.remarks.length;
for (const name of [...new Set(items.map((item) => item.plugin))].filter(Boolean).sort()) {
  const choice = element("option", "", name);
  choice.value = name;
  plugin.append(choice);
}
scroll.addEventListener("scroll", () => draw(false), { passive: true });
new ResizeObserver(() => {
  drawOverview();
  draw(false);
  drawAxis();
}).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
refresh();
drawOverview();
drawAxis();
