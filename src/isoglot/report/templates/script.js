"use strict";
(() => {
  // the theme: what the system says, until the reader says otherwise
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const kept = (() => { try { return localStorage.getItem("isoglot-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.hidden = false;
  button.addEventListener("click", () => {
    const now = root.dataset.theme || (matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("isoglot-theme", root.dataset.theme); } catch { /* private windows */ }
  });

  // tables: a click on a heading sorts by its column, a second one the other way round
  const valueOf = (cell) => {
    const text = cell.firstChild ? cell.firstChild.textContent.replaceAll(",", "").trim() : "";
    const number = Number(text.replace("*", ""));
    return text === "" ? null : isNaN(number) ? text : number;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (table, heading, index) => {
    const down = heading.getAttribute("aria-sort") !== "descending" && index > 0;
    const again = heading.getAttribute("aria-sort") === "ascending";
    const sign = down || again ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[index]), row]);
    rows.sort(([a], [b]) => (a === null ? 1 : b === null ? -1 : sign * compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table[data-sorts]")) {
    [...table.tHead.rows[0].cells].forEach((heading, index) => {
      const press = document.createElement("button");
      press.type = "button";
      press.title = "Sort";
      press.append(...heading.childNodes);
      heading.append(press);
      press.addEventListener("click", () => sort(table, heading, index));
    });
  }
})();
