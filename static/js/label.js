// The labelling screen, made fast: the next case is leased and fetched ahead, a save swaps at once, a
// failed save brings the case back with its draft. Drafts stay in this browser until they are saved.
"use strict";

(() => {
  const HEARTBEAT_MS = 120000;
  const stage = document.getElementById("labelling");
  if (!stage) return;
  let ahead = null; // the next case as an element, already leased to us
  let fetching = null;
  const sending = new Map(); // case -> its save under way; a later decision on that case waits for it

  const current = () => document.getElementById("label-case");
  const key = (element) => `flywheel.draft.${document.body.dataset.project}.${element.dataset.case}`;

  function store(action, name, value) {
    try {
      return action === "set" ? localStorage.setItem(name, value) : action === "remove" ? localStorage.removeItem(name) : localStorage.getItem(name);
    } catch {
      return null; // private windows may refuse; the page works without drafts
    }
  }

  function draftOf(form) {
    const data = new FormData(form);
    return Object.fromEntries(["kind", "severity", "correction", "note"].map((name) => [name, data.get(name) || ""]));
  }

  function keepDraft(element) {
    store("set", key(element), JSON.stringify(draftOf(element.querySelector("[data-decision]"))));
  }

  function restoreDraft(element) {
    const text = store("get", key(element));
    if (!text) return;
    let draft;
    try { draft = JSON.parse(text); } catch { return; }
    const form = element.querySelector("[data-decision]");
    for (const name of ["kind", "severity"]) {
      for (const input of form.querySelectorAll(`input[name="${name}"]`)) input.checked = input.value === draft[name];
    }
    for (const name of ["correction", "note"]) {
      if (draft[name]) form.elements[name].value = draft[name];
    }
  }

  function parse(html) {
    return new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  }

  function send(url, body) {
    const headers = { Accept: "text/x-fragment", "X-CSRFToken": JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"] };
    // keepalive: a save that is under way survives leaving the page (browsers allow it for small bodies).
    const size = [...body.values()].reduce((sum, value) => sum + value.length, 0);
    return fetch(url, { method: "POST", headers, body, credentials: "same-origin", keepalive: size < 16000 });
  }

  function fetchAhead() {
    const here = current();
    if (!here || ahead || fetching) return fetching;
    const query = new URLSearchParams({ exclude: here.dataset.case, family: stage.dataset.family });
    fetching = fetch(`${stage.dataset.next}?${query}`, { credentials: "same-origin" })
      .then(async (answer) => { if (answer.status === 200) ahead = parse(await answer.text()); })
      .catch(() => {})
      .finally(() => { fetching = null; });
    return fetching;
  }

  function show(element) {
    current().replaceWith(element);
    window.htmx.process(element);
    restoreDraft(element);
    element.querySelector(".label-transcript").focus({ preventScroll: true });
    window.flywheel.announce(`Case ${element.dataset.case}`);
  }

  function countDown() {
    const place = document.querySelector("[data-queue-waiting]");
    const waiting = parseInt(place.textContent.replace(/\D/g, ""), 10);
    if (waiting > 0) place.textContent = `${(waiting - 1).toLocaleString("en")} to label`;
  }

  async function finish(form, { words, group }) {
    const left = current();
    const body = new FormData(form);
    if (group) body.set("group", "1");
    if (form.matches("[data-decision]")) keepDraft(left);
    const next = group ? null : ahead;
    ahead = null;
    if (next) show(next);
    let problem = "";
    let answer = null;
    try {
      const before = sending.get(left.dataset.case) || Promise.resolve();
      const mine = before.catch(() => {}).then(() => send(form.action, body));
      sending.set(left.dataset.case, mine);
      answer = await mine;
      if (!answer.ok) {
        const told = (answer.headers.get("Content-Type") || "").includes("json") ? await answer.json() : {};
        problem = told.message || `The server answered ${answer.status}.`;
      }
    } catch {
      problem = "The server cannot be reached.";
    }
    if (problem) {
      if (next && current() === next) { ahead = next; show(left); }
      window.flywheel.flash(`${problem} Case ${left.dataset.case} was not ${words}; your draft is kept.`);
      window.flywheel.announce(problem);
      return;
    }
    store("remove", key(left));
    const recent = parse(await answer.text());
    if (recent && recent.id === "recent") document.getElementById("recent").replaceWith(recent);
    document.querySelector("[data-undo]").disabled = false;
    if (!next) {
      window.location.assign(stage.dataset.here + (stage.dataset.family ? `?family=${encodeURIComponent(stage.dataset.family)}` : ""));
      return;
    }
    if (words === "saved") countDown();
    fetchAhead();
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-decision]")) {
      event.preventDefault();
      const chosen = form.querySelector("input[name=kind]:checked");
      if (!chosen) {
        window.flywheel.flash("Choose what went wrong before saving.");
        form.querySelector("input[name=kind]").focus();
        return;
      }
      if (chosen.value !== "not_a_failure" && !form.querySelector("input[name=severity]:checked")) {
        window.flywheel.flash("Choose a severity before saving.");
        form.querySelector("input[name=severity]").focus();
        return;
      }
      finish(form, { words: "saved", group: event.submitter && event.submitter.name === "group" });
    } else if (form.matches("[data-skip]")) {
      event.preventDefault();
      finish(form, { words: "skipped", group: false });
    }
  });

  stage.addEventListener("input", (event) => {
    if (event.target.form && event.target.form.matches("[data-decision]")) keepDraft(current());
  });

  // "s" walks through the severities.
  stage.addEventListener("click", (event) => {
    const button = event.target.closest("[data-cycle]");
    if (!button) return;
    const inputs = [...button.closest("form").querySelectorAll(`input[name="${button.dataset.cycle}"]`)];
    const next = inputs[(inputs.findIndex((input) => input.checked) + 1) % inputs.length];
    next.checked = true;
    next.dispatchEvent(new Event("input", { bubbles: true }));
    window.flywheel.announce(next.parentElement.textContent.trim());
  });

  window.setInterval(() => {
    for (const element of [current(), ahead]) {
      if (element) send(element.dataset.lease, new FormData()).catch(() => {});
    }
  }, HEARTBEAT_MS);

  restoreDraft(current());
  fetchAhead();
})();
