// Plotly figures: JSON in <script type="application/json" data-figure>, colours from the CSS tokens. A string
// "var(--accent)" anywhere in a figure becomes that token's present value, again on every theme change.
// Plotly is loaded only on pages that have a figure.
"use strict";

(() => {
  const CYCLE = ["accent", "muted", "pass", "warn", "info", "fail", "mask"];
  const kept = new Map(); // name -> plot element of a fragment that is being replaced
  let loading = null;

  function token(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    probe.hidden = true;
    document.body.append(probe);
    const colour = window.getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }

  function resolve(value, colours) {
    if (typeof value === "string") return value.replace(/var\(--([\w-]+)\)/g, (_, name) => (colours[name] ??= token(name)));
    if (Array.isArray(value)) return value.map((item) => resolve(item, colours));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, colours)]));
    return value;
  }

  function axis(own, base) {
    return { ...base, ...own, tickfont: { ...base.tickfont, ...(own || {}).tickfont } };
  }

  function themed(figure, height, name) {
    const font = { family: window.getComputedStyle(document.body).fontFamily, size: 12, color: "var(--muted)" };
    const line = { gridcolor: "var(--border)", linecolor: "var(--border)", zerolinecolor: "var(--control)", tickfont: font, automargin: true };
    const own = { ...figure.layout };
    delete own.template;
    const legend = own.showlegend ?? (figure.data || []).length > 1;
    const layout = {
      autosize: true, height, font, colorway: CYCLE.map((colour) => `var(--${colour})`),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 48, r: 16, t: own.title || legend ? 36 : 12, b: 36 },
      hoverlabel: { bgcolor: "var(--panel)", bordercolor: "var(--border)", font: { ...font, color: "var(--text)" } },
      // Above the plot: below it the names of an axis need the room.
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font }, showlegend: legend,
      uirevision: name || true, ...own,
    };
    const level = { ...line, showgrid: false, zeroline: false };
    for (const key of ["xaxis", "yaxis", ...Object.keys(own).filter((k) => /^[xy]axis\d+$/.test(k))]) layout[key] = axis(own[key], key.startsWith("x") ? level : line);
    return resolve({ data: figure.data || [], layout }, {});
  }

  function plotly() {
    loading ??= new Promise((done, failed) => {
      if (window.Plotly) { done(window.Plotly); return; }
      const script = document.createElement("script");
      script.src = document.body.dataset.plotly;
      script.addEventListener("load", () => done(window.Plotly));
      script.addEventListener("error", () => failed(new Error("plotly.js did not load")));
      document.head.append(script);
    });
    return loading;
  }

  async function draw(holder) {
    const place = holder.querySelector("[data-plot]");
    try {
      const Plotly = await plotly();
      const figure = JSON.parse(holder.querySelector("[data-figure]").textContent);
      const { data, layout } = themed(figure, Number(holder.dataset.height) || 260, holder.dataset.name);
      await Plotly.react(place, data, layout, { displayModeBar: false, responsive: true, locale: "en" });
    } catch (error) {
      const note = document.createElement("p");
      note.className = "failed";
      note.textContent = `${place.getAttribute("aria-label")} The chart could not be drawn: ${error.message}.`;
      place.replaceChildren(note);
    }
  }

  const drawAll = (root = document) => root.querySelectorAll("[data-chart]").forEach(draw);

  // A live fragment brings the same figure with newer numbers: the drawn element moves over, so that
  // zoom stays and nothing flickers.
  document.addEventListener("htmx:beforeSwap", (event) => {
    for (const holder of event.detail.target.querySelectorAll("[data-chart][data-name]")) {
      const place = holder.querySelector("[data-plot].js-plotly-plot");
      if (place) kept.set(holder.dataset.name, place);
    }
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const holder of document.querySelectorAll("[data-chart]")) {
      const place = holder.querySelector("[data-plot]");
      const old = kept.get(holder.dataset.name);
      if (place.classList.contains("js-plotly-plot")) continue;
      if (old) {
        old.setAttribute("aria-label", place.getAttribute("aria-label"));
        place.replaceWith(old);
      }
      draw(holder);
    }
    kept.clear();
  });

  document.addEventListener("DOMContentLoaded", () => drawAll());
  new MutationObserver(() => drawAll()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
})();
