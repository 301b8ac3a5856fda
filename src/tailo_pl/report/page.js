"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = { dashed: "7 4", dotted: "2 3" };
  const HEIGHT = 260;
  const MARGIN = { left: 58, right: 20, top: 24, bottom: 42 };
  const off = new Set(); // what the legends have switched off
  const positions = {}; // of each figure's sliders
  const cursors = {}; // where the keyboard is in each figure

  // Elements
  const node = (name, attributes = {}, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const colour = (index = 0) => (index < 0 ? "currentColor" : data.palette[index % data.palette.length]);

  // Numbers
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2);
    const whole = Number.isInteger(value) || size >= 100;
    return value.toLocaleString("en-US", whole ? { maximumFractionDigits: 1 } : { maximumSignificantDigits: 3 });
  };
  const ticks = (low, high, count) => {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.7);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(n * step);
    return found.map((value) => (Math.abs(value) < step * 1e-9 ? 0 : value));
  };
  const label = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(0);
    return value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
  };
  const extent = (values) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) if (value !== null && value !== undefined) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return low <= high ? [low, high] : null;
  };
  const widened = ([low, high], share) => {
    const room = high > low ? (high - low) * share : Math.abs(high) * 0.1 || 1;
    return [low - room, high + room];
  };

  // What a figure shows now: its sliders and its legend taken into account
  const scope = (figure, group) => `${figure.key.split("-")[0]}:${group}`;
  const groupOf = (series) => series.group || series.name;
  const current = (key) => {
    const figure = data.figures[key];
    const variant = (figure.variants || {})[positions[figure.follows || key]] || {};
    const series = figure.series.map((one, index) => (variant.y ? { ...one, y: variant.y[index] } : one));
    return { ...figure, ...variant, series };
  };
  const visible = (figure) => figure.series.filter((one) => !off.has(scope(figure, groupOf(one))));

  // Drawing
  const frame = (figure, width, height, margin, xs, ys, xTicks, yTicks) => {
    const x = (value) => margin.left + ((value - xs[0]) / (xs[1] - xs[0])) * (width - margin.left - margin.right);
    const y = (value) => height - margin.bottom - ((value - ys[0]) / (ys[1] - ys[0])) * (height - margin.top - margin.bottom);
    const names = figure.series.map((one) => one.name).join(", ");
    const svg = node("svg", {
      viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img",
      "aria-label": `${figure.title}. ${figure.y_label || ""} against ${figure.x_label}. Shows ${names}.`,
    });
    const [left, right, top, bottom] = [margin.left, width - margin.right, margin.top, height - margin.bottom];
    for (const tick of xTicks) {
      svg.append(node("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom }));
      svg.append(node("text", { class: "soft", x: x(tick), y: bottom + 16, "text-anchor": "middle" }, label(tick)));
    }
    for (const tick of yTicks) {
      svg.append(node("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
      svg.append(node("text", { class: "soft", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, label(tick)));
    }
    svg.append(node("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    svg.append(node("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, figure.x_label));
    if (figure.y_label) svg.append(node("text", { x: 2, y: 12 }, figure.y_label));
    return { svg, x, y, left, right, top, bottom };
  };

  const line = (series, x, y) => {
    let path = "", open = false;
    series.y.forEach((value, index) => {
      if (value === null) { open = false; return; }
      path += `${open ? "L" : "M"}${x(series.x[index]).toFixed(1)} ${y(value).toFixed(1)}`;
      open = true;
    });
    return node("path", {
      d: path, fill: "none", stroke: colour(series.color), "stroke-width": series.thin ? 1 : 2,
      "stroke-opacity": series.thin ? 0.45 : 1, "stroke-dasharray": DASHES[series.dash] || "none", "stroke-linejoin": "round",
    });
  };
  const dots = (series, x, y) => {
    const places = series.x.map((place, index) => `M${x(place).toFixed(1)} ${y(series.y[index]).toFixed(1)}h0`);
    return node("path", { d: places.join(""), stroke: colour(series.color), "stroke-width": 3, "stroke-linecap": "round" });
  };
  const band = (series, x, y) => {
    const forth = series.x.map((place, index) => `${x(place).toFixed(1)} ${y(series.high[index]).toFixed(1)}`);
    const back = series.x.map((place, index) => `${x(place).toFixed(1)} ${y(series.low[index]).toFixed(1)}`).reverse();
    return node("path", { d: `M${[...forth, ...back].join("L")}Z`, fill: colour(series.color), "fill-opacity": 0.18 });
  };
  const histogram = (series, x, y) => {
    const bars = series.y.map((value, index) => {
      const [from, to] = [x(series.x[index]), x(series.x[index + 1])];
      return `M${from.toFixed(1)} ${y(0).toFixed(1)}V${y(value).toFixed(1)}H${to.toFixed(1)}V${y(0).toFixed(1)}Z`;
    });
    const look = { fill: colour(series.color), "fill-opacity": 0.45, stroke: colour(series.color), "stroke-width": 0.75 };
    return node("path", { d: bars.join(""), ...look });
  };

  const marks = (figure, plot, higher = 0) => {
    const taken = [];
    for (const [number, mark] of (figure.marks || []).entries()) {
      const dash = ["5 3", "1.5 3", "9 3 2 3"][number % 3]; // told apart
      const look = { stroke: colour(mark.color), "stroke-width": 1.5, "stroke-opacity": 0.75, "stroke-dasharray": dash };
      if (mark.axis === "y") {
        const at = plot.y(mark.value);
        plot.svg.append(node("line", { x1: plot.left, x2: plot.right, y1: at, y2: at, ...look }));
        let above = at - 5;
        if (above < plot.top + 8 || taken.some((other) => Math.abs(other - above) < 14)) above = at + 14;
        taken.push(above);
        plot.svg.append(node("text", { class: "halo", x: plot.right - 4, y: above, "text-anchor": "end" }, mark.label));
      } else {
        const at = plot.x(mark.value);
        const leftwards = at > (plot.left + plot.right) / 2;
        plot.svg.append(node("line", { x1: at, x2: at, y1: plot.top, y2: plot.bottom, ...look }));
        const place = { x: at + (leftwards ? -5 : 5), y: plot.top + 12 + higher, "text-anchor": leftwards ? "end" : "start" };
        plot.svg.append(node("text", { class: "halo", ...place }, mark.label));
      }
    }
  };

  const drawCurves = (figure, shown, width) => {
    const bars = figure.kind === "histogram";
    const map = figure.kind === "map";
    const values = shown.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]);
    const across = (figure.marks || []).filter((mark) => mark.axis === "y").map((mark) => mark.value);
    let ys = widened(extent([...values, ...across]) || [0, 1], 0.06);
    if (bars) ys = [0, ys[1]];
    const xs = extent(shown.flatMap((one) => one.x)) || [0, 1];
    if (xs[0] === xs[1]) [xs[0], xs[1]] = widened(xs, 0);
    if (map) [xs[0], xs[1]] = widened(xs, 0.06);
    const [xTicks, yTicks] = [ticks(...xs, Math.max(3, Math.min(8, width / 90))), ticks(...ys, 5)];
    const inner = Math.min(width, 520) - MARGIN.left - MARGIN.right;
    const outer = map ? inner + MARGIN.left + MARGIN.right : width;
    const height = map ? (inner * (ys[1] - ys[0])) / (xs[1] - xs[0]) + MARGIN.top + MARGIN.bottom : HEIGHT;
    const plot = frame(figure, outer, height, MARGIN, xs, ys, xTicks, yTicks);
    if (figure.shade) {
      const [from, to] = [plot.x(Math.max(xs[0], figure.shade[0])), plot.x(Math.min(xs[1], figure.shade[1]))];
      const look = { fill: "currentColor", "fill-opacity": 0.09 };
      plot.svg.append(node("rect", { x: from, y: plot.top, width: Math.max(0, to - from), height: plot.bottom - plot.top, ...look }));
    }
    marks(figure, plot); // behind the curves
    for (const one of shown) if (one.low && !bars) plot.svg.append(band(one, plot.x, plot.y));
    for (const one of shown) plot.svg.append(bars ? histogram(one, plot.x, plot.y) : (one.dots ? dots : line)(one, plot.x, plot.y));
    if (!bars) for (const one of shown) if (one.x.length === 1) {
      plot.svg.append(node("circle", { cx: plot.x(one.x[0]), cy: plot.y(one.y[0]), r: 3.5, fill: colour(one.color) }));
    }
    return plot;
  };

  const wrapped = (text, most) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1) && (lines.at(-1) + " " + word).length > most) lines.push("");
      lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    }
    return lines;
  };

  // Bars and intervals lie on their side: names of any length fit above them
  const drawRows = (figure, shown, width) => {
    const intervals = figure.kind === "intervals";
    const most = Math.floor((width - 20) / 7);
    const titles = figure.categories.map((name) => wrapped(name, most));
    const heights = titles.map((lines) => lines.length * 15 + shown.length * 18 + 10);
    const lead = (figure.marks || []).length ? 28 : 12; // room for what a mark is called
    const height = heights.reduce((sum, one) => sum + one, 0) + lead + 46;
    const values = shown.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]);
    const across = (figure.marks || []).map((mark) => mark.value);
    let xs = figure.x_range || extent([0, ...values, ...across]) || [0, 1];
    xs = [xs[0] < 0 ? widened(xs, 0.04)[0] : 0, xs[1] > xs[0] ? xs[1] : xs[0] + 1];
    const margin = { left: 10, right: 64, top: lead, bottom: 42 };
    const plot = frame(figure, width, height, margin, xs, [0, 1], ticks(...xs, Math.max(3, Math.min(6, width / 100))), []);
    marks(figure, plot, -16); // behind the rows, named above them
    let at = margin.top + 4;
    titles.forEach((lines, row) => {
      for (const text of lines) plot.svg.append(node("text", { class: "halo", x: margin.left, y: (at += 15) - 3 }, text));
      for (const one of shown) {
        const value = one.y[row], middle = at + 8;
        if (intervals) {
          const look = { stroke: colour(one.color), "stroke-width": 6, "stroke-opacity": 0.4 };
          plot.svg.append(node("line", { x1: plot.x(one.low[row]), x2: plot.x(one.high[row]), y1: middle, y2: middle, ...look }));
          plot.svg.append(node("circle", { cx: plot.x(value), cy: middle, r: 4.5, fill: colour(one.color) }));
        } else {
          const reach = Math.abs(plot.x(value) - plot.x(0));
          const look = { fill: colour(one.color), "fill-opacity": 0.85 };
          plot.svg.append(node("rect", { x: Math.min(plot.x(0), plot.x(value)), y: at + 1, width: Math.max(reach, 1), height: 14, ...look }));
        }
        const end = plot.x(intervals ? one.high[row] : Math.max(value, 0));
        plot.svg.append(node("text", { class: "halo", x: end + 8, y: middle + 4 }, show(value)));
        at += 18;
      }
      at += 10;
    });
    return plot;
  };

  // Reading off values, with the pointer or with the arrow keys
  const reader = (figure, shown, plot, box) => {
    const tip = element("div", { className: "tip", hidden: true });
    tip.setAttribute("role", "status");
    const cross = node("line", { class: "axis", y1: plot.top, y2: plot.bottom, visibility: "hidden" });
    plot.svg.append(cross);
    box.append(tip);
    const bars = figure.kind === "histogram";
    const many = shown.length > 8;
    const listed = shown.filter((one) => !many || !one.thin);
    const centre = (one, index) => (bars ? (one.x[index] + one.x[index + 1]) / 2 : one.x[index]);
    const places = [...new Set(listed.flatMap((one) => one.y.map((_, index) => centre(one, index))))].sort((a, b) => a - b);
    const nearest = (one, place) => {
      let best = -1, distance = Infinity;
      one.y.forEach((value, index) => {
        const away = Math.abs(centre(one, index) - place);
        if (value !== null && away < distance) [best, distance] = [index, away];
      });
      return [best, distance];
    };
    const tell = (position) => {
      const place = places[Math.max(0, Math.min(places.length - 1, position))];
      if (place === undefined) return;
      cursors[figure.key] = places.indexOf(place);
      const reach = (places.at(-1) - places[0]) * 0.03;
      const rows = listed.map((one) => [one, ...nearest(one, place)]).filter(([, index, away]) => index >= 0 && away <= reach);
      const head = element("b", { textContent: `${figure.x_label}: ${show(place)}` });
      tip.replaceChildren(head, ...rows.map(([one, index]) => {
        const spread = one.low ? ` (${show(one.low[index])} to ${show(one.high[index])})` : "";
        return element("div", {}, swatch(one), `${one.name}: ${show(one.y[index])}${spread}`);
      }));
      tip.hidden = false;
      const at = plot.x(place);
      for (const side of ["x1", "x2"]) cross.setAttribute(side, at);
      cross.setAttribute("visibility", "visible");
      const half = at > (plot.left + plot.right) / 2;
      tip.style.left = half ? "" : `${at + 10}px`;
      tip.style.right = half ? `${box.clientWidth - at + 10}px` : "";
    };
    const leave = () => { tip.hidden = true; cross.setAttribute("visibility", "hidden"); };
    plot.svg.addEventListener("pointermove", (event) => {
      const bounds = plot.svg.getBoundingClientRect();
      const pixel = event.clientX - bounds.left;
      let best = 0;
      places.forEach((place, index) => {
        if (Math.abs(plot.x(place) - pixel) < Math.abs(plot.x(places[best]) - pixel)) best = index;
      });
      tell(best);
    });
    plot.svg.addEventListener("pointerleave", leave);
    plot.svg.addEventListener("blur", leave);
    plot.svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") leave();
      if (step === undefined) return;
      event.preventDefault();
      tell((cursors[figure.key] ?? -1) + step);
    });
  };

  const swatch = (one) => {
    const svg = node("svg", { width: 22, height: 10, "aria-hidden": "true" });
    const dash = DASHES[one.dash] || "none";
    svg.append(node("line", { x1: 1, x2: 21, y1: 5, y2: 5, stroke: colour(one.color), "stroke-width": 3, "stroke-dasharray": dash }));
    return svg;
  };

  const legend = (figure, box) => {
    const groups = new Map();
    for (const one of figure.series) if (!groups.has(groupOf(one)) || !one.thin) groups.set(groupOf(one), one);
    if (groups.size < 2) return;
    box.replaceChildren(...[...groups].map(([group, one]) => {
      const key = scope(figure, group);
      const button = element("button", { type: "button" }, swatch(one), group);
      button.setAttribute("aria-pressed", String(!off.has(key)));
      button.addEventListener("click", () => {
        if (!off.delete(key)) off.add(key);
        const number = [...box.children].indexOf(button);
        drawAll();
        box.children[number].focus();
      });
      return button;
    }));
  };

  const numbers = (figure) => {
    const rows = [];
    const names = figure.categories;
    const head = names ? ["", "value", "low", "high"] : [figure.x_label, "value", "low", "high"];
    for (const one of visible(figure)) one.y.forEach((value, index) => {
      const place = names ? names[index] : show(one.x[index]);
      rows.push([one.name, place, show(value), one.low ? show(one.low[index]) : "", one.high ? show(one.high[index]) : ""]);
    });
    const cell = (text, kind = "td") => element(kind, { textContent: text });
    const body = rows.map((row) => element("tr", {}, ...row.map((text) => cell(text))));
    const top = element("tr", {}, ...["series", ...head].map((text) => cell(text, "th")));
    return element("table", {}, element("thead", {}, top), element("tbody", {}, ...body));
  };

  const draw = (holder) => {
    const figure = data.figures[holder.dataset.figure];
    const box = holder.querySelector(".drawing");
    if (!figure.series || !box || !box.clientWidth) return;
    const now = current(figure.key);
    const shown = visible(now);
    const rows = now.kind === "bars" || now.kind === "intervals";
    box.replaceChildren();
    if (shown.length) {
      const plot = (rows ? drawRows : drawCurves)(now, shown, box.clientWidth);
      box.append(plot.svg);
      if (!rows && now.kind !== "map") reader(now, shown, plot, box);
    } else {
      box.append(element("p", { className: "empty", textContent: "Everything is switched off in the legend." }));
    }
    legend(now, holder.querySelector(".legend"));
    const facts = (now.facts || []).flatMap(([name, value]) => [element("div", {},
      element("dt", { textContent: name }), element("dd", { textContent: value }))]);
    holder.querySelector(".facts").replaceChildren(...facts);
    const details = holder.querySelector("details");
    if (details && details.open) details.lastChild.replaceChildren(numbers(now));
  };
  const holders = [...document.querySelectorAll("[data-figure]")];
  const drawAll = () => holders.forEach(draw);

  // Sliders
  for (const holder of holders) {
    const figure = data.figures[holder.dataset.figure];
    const inputs = [...holder.querySelectorAll("[data-control]")];
    const move = () => {
      positions[figure.key] = inputs.map((input) => input.value).join(",");
      inputs.forEach((input, index) => {
        const control = figure.controls[index];
        const own = Number(input.value) === (control.start || 0) ? " (this run)" : "";
        const text = `${control.values[input.value]}${own}`;
        input.setAttribute("aria-valuetext", text);
        input.nextElementSibling.textContent = text;
      });
    };
    if (inputs.length) move();
    for (const input of inputs) input.addEventListener("input", () => { move(); drawAll(); });
    if (figure.series) {
      const details = element("details", {}, element("summary", { textContent: "Numbers" }), element("div", { className: "wide" }));
      details.addEventListener("toggle", () => draw(holder));
      holder.append(details);
    }
  }

  // Runs
  const choice = document.getElementById("run");
  if (choice) {
    const choose = () => {
      for (const part of document.querySelectorAll("[data-run]")) part.hidden = part.dataset.run !== choice.value;
      drawAll();
    };
    choice.addEventListener("change", choose);
    choose();
  }

  // Theme: as the system has it until the button says otherwise
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const labelTheme = () => {
    button.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    labelTheme();
  });
  system.addEventListener("change", labelTheme);
  labelTheme();

  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth !== width) { width = document.body.clientWidth; drawAll(); }
  }).observe(document.body);
  drawAll();
})();
