"use strict";
// Sort a table by the column whose heading is pressed; numbers by value, words by the alphabet; again: the other way.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const key = (row, k) => {
    const cell = row.cells[k];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [key(row, k), row]);
    const order = down ? -1 : 1;
    rows.sort(([s], [t]) => order * (typeof s === "number" ? s - t : String(s).localeCompare(String(t))));
    body.append(...rows.map(([, row]) => row));
    document.getElementById("sorted").textContent =
      `Sorted by ${head.textContent.trim()}, ${down ? "descending" : "ascending"}`;
  }));
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
