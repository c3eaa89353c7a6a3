// Keyboard shortcuts. They are declared on the control (aria-keyshortcuts="c", or data-keys="g e" for
// a sequence) and only read here. Keys are ignored while typing and in a dialog, except chords with
// Control (or the command key), which also work from a text field.
"use strict";

(() => {
  const SEQUENCE_MS = 1200;
  const SIGNS = { Control: "Ctrl", Enter: "⏎", Backspace: "⌫", Escape: "Esc" };
  let prefix = "";
  let prefixAt = 0;

  const visible = (element) => element.getClientRects().length > 0 || element.closest("details:not([open])") !== null;
  const controls = () => [...document.querySelectorAll("[aria-keyshortcuts]")].filter((el) => !el.disabled && visible(el));
  const typing = (element) =>
    element.isContentEditable ||
    element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=range])");

  function chord(event) {
    const key = event.key === " " ? "Space" : event.key;
    const modifiers = [];
    if (event.ctrlKey || event.metaKey) modifiers.push("Control");
    if (event.altKey) modifiers.push("Alt");
    if (event.shiftKey && key.length > 1) modifiers.push("Shift");
    return [...modifiers, key].join("+");
  }

  function declares(element, keys) {
    return element.getAttribute("aria-keyshortcuts").split(" ").some((own) => own.replace("Meta+", "Control+") === keys);
  }

  function activate(element) {
    if (typing(element)) {
      element.focus();
      if (element.select && element.type !== "number") element.select();
    } else if (element.tagName === "FIELDSET" || element.getAttribute("role") === "radiogroup") {
      (element.querySelector("input:checked") || element.querySelector("input, button"))?.focus();
    } else {
      element.click();
    }
  }

  // Rows: j and k move the focus to the next or previous row's link or control; Enter then follows it.
  function move(step) {
    const rows = [...document.querySelectorAll("[data-rows] tbody tr, [data-row]")].filter((row) => row.querySelector("a[href], button, input"));
    if (!rows.length) return false;
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[Math.max(0, Math.min(rows.length - 1, here === -1 ? (step > 0 ? 0 : rows.length - 1) : here + step))];
    next.querySelector("a[href], button, input").focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  function label(element) {
    if (element.dataset.shortcutLabel) return element.dataset.shortcutLabel;
    const own = element.getAttribute("aria-label") || element.getAttribute("title");
    if (own) return own;
    const named = element.labels && element.labels[0];
    const copy = (element.matches("input, textarea, select, fieldset") && (named || element.querySelector("legend")) || element).cloneNode(true);
    copy.querySelectorAll("kbd, .visually-hidden").forEach((part) => part.remove());
    return copy.textContent.replace(/\s+/g, " ").trim() || element.placeholder || element.name || "";
  }

  function showKeys() {
    const dialog = document.getElementById("keys");
    if (!dialog || dialog.open) return;
    const rows = [];
    for (const element of controls()) rows.push([element.getAttribute("aria-keyshortcuts").split(" ")[0], label(element)]);
    if (document.querySelector("[data-rows] tbody tr, [data-row]")) rows.push(["j", "Next row"], ["k", "Previous row"], ["Enter", "Open the row"]);
    for (const element of document.querySelectorAll("[data-keys]")) rows.push([element.dataset.keys, label(element)]);
    rows.push(["?", "This list"]);
    dialog.querySelector("tbody").replaceChildren(...rows.map(([keys, text]) => {
      const row = document.createElement("tr");
      const name = document.createElement("td");
      name.textContent = text;
      const hint = document.createElement("td");
      hint.className = "fit right";
      for (const part of keys.split(" ")) {
        const kbd = document.createElement("kbd");
        kbd.textContent = part.split("+").map((key) => SIGNS[key] || key).join(" ");
        hint.append(kbd, " ");
      }
      row.append(name, hint);
      return row;
    }));
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-open-keys]")) showKeys();
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.repeat && event.key.length > 1) return;
    if (document.querySelector("dialog[open]")) return;
    const keys = chord(event);
    const target = event.target instanceof Element ? event.target : document.body;
    const withControl = keys.startsWith("Control+");
    if (typing(target) && !withControl) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.altKey || (keys === "Space" || keys === "Enter") && target.closest("a, button, summary, input, [tabindex='0']")) return;

    if (!withControl) {
      const sequence = prefix && performance.now() - prefixAt < SEQUENCE_MS ? `${prefix} ${event.key}` : "";
      prefix = "";
      if (sequence) {
        const link =
          [...document.querySelectorAll("[data-keys]")].find((el) => el.dataset.keys === sequence);
        if (link) {
          event.preventDefault();
          link.click();
          return;
        }
      }
      if ([...document.querySelectorAll("[data-keys]")].some((el) => el.dataset.keys.startsWith(`${event.key} `))) {
        prefix = event.key;
        prefixAt = performance.now();
        return;
      }
    }
    const control = controls().find((element) => declares(element, keys));
    if (control) {
      event.preventDefault();
      activate(control);
    } else if (keys === "?") {
      event.preventDefault();
      showKeys();
    } else if (keys === "j" || keys === "k") {
      if (move(keys === "j" ? 1 : -1)) event.preventDefault();
    }
  });
})();
