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

  // saving: figures as SVG and PNG, tables as CSV, made here from what the page shows
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const nameOf = (element) => {
    // a figure's caption, the heading before a table, or that of its part of the page
    const figure = element.closest("figure");
    let title = figure && figure.querySelector("figcaption");
    for (let before = element.parentElement; before && !title; before = before.previousElementSibling) {
      if (/^(H2|H3|SUMMARY)$/.test(before.tagName)) title = before;
    }
    title = title || document.querySelector("h1");
    const words = title.textContent.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
    return words.replace(/^-|-$/g, "").slice(0, 60) || "isoglot";
  };
  const svgOf = (svg) => {
    const copy = svg.cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return new XMLSerializer().serializeToString(copy);
  };
  const savePng = (svg) => {
    const { width, height } = svg.viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      const pen = canvas.getContext("2d");
      pen.fillStyle = "white";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(nameOf(svg) + ".png", blob), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgOf(svg));
  };
  const csvOf = (table) => {
    const small = (cell) => cell.querySelector("small");
    const main = (cell) => {
      const copy = cell.cloneNode(true);
      for (const note of copy.querySelectorAll("small")) note.remove();
      return copy.textContent.trim().replace(/\s+/g, " ");
    };
    const rows = [...table.rows];
    const width = Math.max(...rows.map((row) => row.cells.length));
    const lines = rows.map(() => []);
    for (let column = 0; column < width; column++) {
      const noted = rows.some((row) => row.cells[column] && small(row.cells[column]));
      rows.forEach((row, index) => {
        const cell = row.cells[column];
        lines[index].push(cell ? main(cell) : "");
        if (noted) lines[index].push(cell && small(cell) ? small(cell).textContent.trim() : "");
      });
    }
    // text that a spreadsheet would take for a formula gets a quotation mark before it
    const quoted = (text) => {
      const isNumber = /^[+-]?[\d.,]+( %| points)?$/.test(text);
      const safe = /^[=+\-@\t]/.test(text) && !isNumber ? "'" + text : text;
      return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
    };
    return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n";
  };
  const offer = (after, buttons) => {
    const line = document.createElement("div");
    line.className = "save";
    for (const [label, action] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", action);
      line.append(button);
    }
    after.after(line);
  };
  for (const svg of document.querySelectorAll("figure > svg")) {
    const asSvg = () => save(nameOf(svg) + ".svg", new Blob([svgOf(svg)], { type: "image/svg+xml" }));
    offer(svg, [["Save SVG", asSvg], ["Save PNG", () => savePng(svg)]]);
  }
  for (const table of document.querySelectorAll(".wide > table")) {
    const asCsv = () => save(nameOf(table) + ".csv", new Blob([csvOf(table)], { type: "text/csv" }));
    offer(table.parentNode, [["Save CSV", asCsv]]);
  }
})();
