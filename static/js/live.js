// Live pages: one WebSocket says "there is more", the page's [data-live] elements are fetched again by
// htmx at most once a second. Without the socket the page polls. Milestones are announced, ticks are not.
"use strict";

(() => {
  const TICK_MS = 1000;
  const POLL_MS = 5000;
  const RETRY_MS = [1000, 2000, 5000, 10000, 20000];
  const LOST_AFTER = 3; // failed fetches in a row before the page says that it is cut off

  let socket = null;
  let tries = 0;
  let after = "";
  let topics = new Set();
  let pending = false;
  let refreshedAt = 0;
  let updatedAt = Date.now();
  let failures = 0;
  let state = "connecting";

  const elements = () => [...document.querySelectorAll("[data-live]")];
  const inUse = (element) => element.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  const concerned = (element) => !element.dataset.live || topics.has("*") || [...topics].some((topic) => topic.startsWith(element.dataset.live));

  function show() {
    const seconds = Math.round((Date.now() - updatedAt) / 1000);
    const age = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
    const words = {
      connecting: "connecting",
      live: `updated ${age} ago`,
      polling: `updated ${age} ago, polling`,
      lost: `disconnected, last update ${age} ago`,
    };
    for (const place of document.querySelectorAll("[data-live-state]")) {
      place.hidden = elements().length === 0;
      place.dataset.state = state;
      place.textContent = words[state];
    }
  }

  function become(next) {
    if (state !== next && (next === "lost" || state === "lost")) {
      window.flywheel.announce(next === "lost" ? "Disconnected. Figures may be old." : "Connected again.");
    }
    state = next;
    show();
  }

  // Fetch again what the collected topics concern; never over a field in use, never more than once a second.
  function refresh() {
    if (pending || document.hidden) return;
    pending = true;
    window.setTimeout(() => {
      pending = false;
      refreshedAt = Date.now();
      const due = elements().filter((element) => concerned(element) && !inUse(element));
      topics = new Set(elements().some((element) => concerned(element) && inUse(element)) ? topics : []);
      for (const element of due) window.htmx.trigger(element, "live");
    }, Math.max(0, refreshedAt + TICK_MS - Date.now()));
  }

  function heard(message) {
    after = message.after || after;
    updatedAt = Date.now();
    for (const event of message.events || []) {
      topics.add(event.topic || "*");
      if (event.data && event.data.say) window.flywheel.announce(event.data.say);
    }
    refresh();
  }

  function connect() {
    if (!elements().length || !document.body.dataset.project) return;
    const scheme = window.location.protocol === "https:" ? "wss" : "ws";
    const query = new URLSearchParams({ project: document.body.dataset.project, after });
    socket = new WebSocket(`${scheme}://${window.location.host}/ws/events/?${query}`);
    socket.addEventListener("open", () => {
      tries = 0;
      updatedAt = Date.now();
      become("live");
    });
    socket.addEventListener("message", (event) => heard(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => {
      socket = null;
      become(failures >= LOST_AFTER ? "lost" : "polling");
      if (event.code === 4403) return; // not a member: the next poll shows the reason
      window.setTimeout(connect, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
    });
  }

  function poll() {
    if (socket && socket.readyState === WebSocket.OPEN) return;
    topics.add("*");
    refresh();
  }

  document.addEventListener("htmx:afterRequest", (event) => {
    if (!(event.detail.elt instanceof Element) || !event.detail.elt.matches("[data-live]")) return;
    if (event.detail.successful) {
      failures = 0;
      updatedAt = Date.now();
      if (state === "lost") become(socket ? "live" : "polling");
    } else {
      failures += 1;
      if (failures >= LOST_AFTER) become("lost");
    }
  });

  // A fragment may carry its own milestone; it is announced once per text.
  const said = new Set();
  document.addEventListener("htmx:afterSettle", () => {
    for (const element of document.querySelectorAll("[data-milestone]")) {
      const text = element.dataset.milestone;
      if (text && !said.has(text)) {
        said.add(text);
        window.flywheel.announce(text);
      }
    }
  });

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && elements().length) {
      topics.add("*");
      refresh();
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of document.querySelectorAll("[data-milestone]")) said.add(element.dataset.milestone);
    const start = elements().find((element) => element.dataset.after);
    if (!elements().length) return;
    after = start ? start.dataset.after : "";
    show();
    connect();
    window.setInterval(show, TICK_MS);
    window.setInterval(poll, POLL_MS);
  });
})();
