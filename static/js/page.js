// Small behaviours of every page: menus close, filters keep the URL short, failed requests are said.
"use strict";

(() => {
  const announcer = () => document.getElementById("announcer");

  window.flywheel = {
    // Tell screen readers something once; sighted people see it on the page already.
    announce(text) {
      const place = announcer();
      if (!place || !text) return;
      place.textContent = "";
      window.setTimeout(() => { place.textContent = text; }, 60);
    },
    // Show a message as the server would.
    flash(text, level = "error") {
      const holder = document.getElementById("flashes");
      if (!holder) return;
      const list = document.createElement("ul");
      list.className = "flashes";
      list.setAttribute("role", "status");
      const item = document.createElement("li");
      item.className = `flash flash-${level}`;
      item.textContent = text;
      list.append(item);
      holder.replaceChildren(list);
    },
  };

  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const copy = event.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      const source = document.getElementById(copy.dataset.copy);
      navigator.clipboard.writeText(source.textContent.trim()).then(() => {
        copy.textContent = "Copied";
        window.flywheel.announce("Copied");
      });
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // The theme changes at once; the form still saves it.
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (form && event.submitter && event.submitter.value) document.documentElement.dataset.theme = event.submitter.value;
  });

  // A form is sent once: a second click would start a second run. htmx looks after its own forms.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    const now = Date.now();
    if (now - Number(form.dataset.sentAt || 0) < 5000) event.preventDefault();
    else form.dataset.sentAt = now;
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent-at]")) delete form.dataset.sentAt;
  });

  // A swap keeps the focus: htmx does so for elements with an id, this does it for links and buttons
  // that can be told by where they lead and what they say.
  let held = null;
  const trait = (element) => [element.tagName, element.getAttribute("href") || element.name || "", element.getAttribute("aria-label") || element.textContent.trim()].join("|");
  document.addEventListener("htmx:beforeSwap", (event) => {
    const active = document.activeElement;
    if (active && active !== document.body && !active.id && event.detail.target.contains(active)) held = trait(active);
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!held || document.activeElement && document.activeElement !== document.body) return;
    const same = [...document.querySelectorAll("main a, main button, main input, main [tabindex]")].find((element) => trait(element) === held);
    held = null;
    if (same) same.focus({ preventScroll: true });
  });

  // Empty filters stay out of the URL.
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, parameters } = event.detail;
    if (!elt.matches("form.filters")) return;
    for (const name of Object.keys(parameters)) {
      if (parameters[name] === "") delete parameters[name];
    }
  });

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.elt.matches("[data-live]")) return;
    const { status, responseText } = event.detail.xhr;
    const plain = (event.detail.xhr.getResponseHeader("Content-Type") || "").startsWith("text/plain");
    if (plain && responseText) window.flywheel.flash(responseText);
    else window.flywheel.flash(status === 403 ? "You may not do this." : `The server answered ${status}. Nothing was changed.`);
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (event.detail.elt.matches("[data-live]")) return;
    window.flywheel.flash("The server cannot be reached. Nothing was changed; try again.");
  });
})();
