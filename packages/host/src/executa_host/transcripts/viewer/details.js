// Details of one item, with the exact lines of the transcript that tell of it.

const details = byId("details");
const main = document.querySelector("main");

function pick(index, focusDetails) {
  picked = index;
  showDetails(index);
  draw(false);
  if (focusDetails) details.focus();
}

function showDetails(index) {
  const item = items[index];
  details.textContent = "";
  const head = element("header");
  const close = element("button", "", "✕");
  close.setAttribute("aria-label", "Close the details");
  close.addEventListener("click", closeDetails);
  head.append(element("h2", "", (item.arrow ? `${item.arrow} ` : "") + item.label), close);
  details.append(head);
  const crumbs = element("nav", "crumbs");
  crumbs.setAttribute("aria-label", "What it stands in");
  const above = [];
  for (let up = parents[index]; up >= 0; up = parents[up]) above.unshift(up);
  for (const up of above) {
    const crumb = element("button", "", items[up].label);
    crumb.addEventListener("click", () => reveal(up, true));
    crumbs.append(crumb);
  }
  if (above.length) details.append(crumbs);
  const facts = element("dl");
  const fact = (name, text, bad) => {
    if (text) facts.append(element("dt", "", name), element("dd", bad ? "bad" : "", text));
  };
  fact("what", item.kind === "reverse" ? "reverse call" : item.kind);
  fact("verdict", item.status === "open" ? "not ended" : item.status, BAD.has(item.status));
  fact("says", item.kind === "frame" || item.kind === "run" ? "" : item.detail, BAD.has(item.status));
  fact("plugin", item.plugin);
  fact("began", `${item.start.toFixed(6)} s, ${new Date((data.at + item.start) * 1000).toISOString()}`);
  fact("took", took(item));
  fact("invoke", item.invoke);
  details.append(facts);
  for (const number of item.rows) details.append(lineOf(number));
  details.hidden = false;
  main.classList.add("open");
  drawAxis();
}

function lineOf(number) {
  const text = data.lines[number] || "";
  const section = element("section", "line");
  const bar = element("div");
  const block = element("pre");
  const indent = element("button", "", "Indent");
  const copy = element("button", "", "Copy");
  indent.setAttribute("aria-pressed", "false");
  indent.addEventListener("click", () => {
    const wanted = indent.getAttribute("aria-pressed") !== "true";
    indent.setAttribute("aria-pressed", wanted);
    paint(block, wanted ? indented(text) : text);
  });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      copy.textContent = "Selected";
    }
  });
  bar.append(element("span", "", `line ${number}, ${text.length.toLocaleString()} characters`), indent, copy);
  section.append(bar, block);
  paint(block, text);
  return section;
}

// Adds spaces and line ends outside strings only: numbers and escapes stay as they were written.
function indented(text) {
  let depth = 0;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]/g, (token) => {
    const line = () => `\n${"  ".repeat(depth)}`;
    if (token === "{" || token === "[") return depth++, token + line();
    if (token === "}" || token === "]") return depth--, line() + token;
    return token === "," ? token + line() : token === ":" ? ": " : token;
  });
}

function paint(block, text) {
  block.textContent = "";
  if (text.length > 200000) return void (block.textContent = text);
  const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/g;
  let at = 0;
  for (const token of text.matchAll(pattern)) {
    block.append(text.slice(at, token.index));
    block.append(element("span", token[2] ? "k" : token[1] ? "s" : "n", token[1] || token[0]));
    block.append(token[2] || "");
    at = token.index + token[0].length;
  }
  block.append(text.slice(at));
}

function closeDetails() {
  details.hidden = true;
  main.classList.remove("open");
  drawAxis();
  rows.focus();
}
