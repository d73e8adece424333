"use strict";
// Draws the rates of the stream that is chosen. Data: see fourrates/report/charts.py, function drawing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const area = document.getElementById("charts");
  const HEIGHT = 190;
  let charts = [];
  let stream = null;
  let sight = [0, 1]; // the first and the last event that are shown

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const whole = (x) => Math.round(x).toLocaleString("en-US");

  // Times are kept for some events and are straight lines between them.
  function timeOf(event) {
    const marks = stream.clock;
    if (!marks) return null;
    const { e, t } = marks;
    let low = 0, high = e.length - 1;
    if (event <= e[0]) return t[0];
    if (event >= e[high]) return t[high];
    while (high - low > 1) {
      const mid = (low + high) >> 1;
      if (e[mid] <= event) low = mid; else high = mid;
    }
    return t[low] + (t[high] - t[low]) * (event - e[low]) / (e[high] - e[low] || 1);
  }

  const iso = (seconds, digits) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, digits);

  function tickText(u, splits) {
    if (!stream.clock) return splits.map((x) => (Number.isInteger(x) ? whole(x) : ""));
    const span = timeOf(u.scales.x.max) - timeOf(u.scales.x.min);
    const digits = span > 3 * 86400 ? [0, 10] : span > 7200 ? [5, 16] : [11, 19];
    return splits.map((x) => iso(timeOf(x), 19).slice(...digits));
  }

  function rateText(u, splits, axis, space, step) {
    let digits = 1;
    while (digits < 5 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-9) digits++;
    return splits.map((x) => (x < -1e-9 || x > 1 + 1e-9 ? "" : Math.abs(x).toFixed(digits)));
  }

  function decode(curve) {
    let event = 0;
    const xs = curve.x.map((step) => (event += step));
    const back = (list) => (list ? list.map((v) => (v === null ? null : v / 1e4)) : xs.map(() => null));
    return [xs, back(curve.v), back(curve.wl), back(curve.wh), back(curve.dl), back(curve.dh)];
  }

  // Vertical lines for drifts under the curve, dots for what lies outside its bounds on top of it.
  function lines(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const { min, max } = u.scales.x;
    const inside = stream.drifts.filter((d) => d.at >= min && d.at <= max).length;
    ctx.lineWidth = (inside > 20 ? 1 : 2) * devicePixelRatio;
    let free = -Infinity; // where the next number may stand without touching the last one
    ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    stream.drifts.forEach((drift, i) => {
      // The band is where it started, as far as that is known; without that it is the warning before the alarm.
      const [first, last] = drift.between ?? [drift.since, drift.at];
      if (drift.at < min || Math.min(first, drift.since) > max) return;
      ctx.strokeStyle = ctx.fillStyle = css(drift.recovery ? "--calm" : "--drift");
      const x = u.valToPos(drift.at, "x", true);
      const from = u.valToPos(first, "x", true);
      ctx.globalAlpha = 0.18;
      ctx.fillRect(from, bbox.top, Math.max(u.valToPos(last, "x", true) - from, devicePixelRatio), bbox.height);
      if (drift.started !== undefined && inside <= 20) {
        const started = u.valToPos(drift.started, "x", true);
        ctx.globalAlpha = 0.8;
        ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.lineWidth = devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(started, bbox.top);
        ctx.lineTo(started, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.lineWidth = 2 * devicePixelRatio;
      }
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.textAlign = x > bbox.left + bbox.width - 30 * devicePixelRatio ? "right" : "left";
      if (x < free) return;
      free = x + 24 * devicePixelRatio;
      ctx.fillText(String(i + 1), x + (ctx.textAlign === "right" ? -5 : 5) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    });
    ctx.restore();
  }

  function dots(u) {
    const [xs, v, wl, wh, dl, dh] = u.data;
    const { ctx, bbox } = u;
    const radius = 1.7 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const [low, high, colour] of [[wl, wh, "--warn"], [dl, dh, "--drift"]]) {
      ctx.fillStyle = css(colour);
      for (let i = 0; i < xs.length; i++) {
        if (v[i] === null || low[i] === null || (v[i] >= low[i] && v[i] <= high[i])) continue;
        if (xs[i] < u.scales.x.min || xs[i] > u.scales.x.max) continue;
        ctx.beginPath();
        ctx.arc(u.valToPos(xs[i], "x", true), u.valToPos(v[i], "y", true), radius, 0, 7);
        ctx.fill();
      }
    }
    ctx.restore();
  }

  const sorted = (list) => [...list].sort((a, b) => a - b);
  const quantile = (list, share) => sorted(list)[Math.round(share * (list.length - 1))];

  // The points of a concept at which its rate has settled. Right after a start the bounds are narrow around a half, then
  // wide: such points would make a flat line of all others.
  function settled(points, dl, dh) {
    const width = (i) => dh[i] - dl[i];
    const usual = quantile(points.map(width), 0.5);
    const first = points.findIndex((i) => width(i) >= usual / 2);
    return points.slice(first).filter((i) => width(i) <= 1.5 * usual);
  }

  // From the lowest to the highest value that is in sight, with its bounds.
  function extent(u) {
    const [xs, v, , , dl, dh] = u.data;
    const [min, max] = sight; // the chart itself may not know them yet
    const concepts = [[]];
    for (let i = 0; i < xs.length; i++) {
      if (v[i] === null) concepts.push([]);
      else if (xs[i] >= min && xs[i] <= max) concepts.at(-1).push(i);
    }
    const seen = concepts.flat();
    if (!seen.length) return [0, 1];
    let low, high;
    if (dl[seen[0]] !== null) {
      const kept = concepts.filter((points) => points.length).flatMap((points) => settled(points, dl, dh));
      low = kept.reduce((a, i) => Math.min(a, v[i], dl[i]), 1);
      high = kept.reduce((a, i) => Math.max(a, v[i], dh[i]), 0);
    } else [low, high] = [0.01, 0.99].map((share) => quantile(seen.map((i) => v[i]), share));
    const room = Math.max(0.06 * (high - low), 0.01);
    return [Math.max(low - room, -0.02), Math.min(high + room, 1.02)];
  }

  function told(curve, columns, i) {
    const [xs, v, wl, wh, dl, dh] = columns;
    if (i === null || i === undefined || v[i] === null || v[i] === undefined) return "";
    const time = timeOf(xs[i]);
    const number = (x) => x.toFixed(3);
    let text = `event ${whole(xs[i])}`;
    if (time !== null) text += `, ${iso(time, 19)}`;
    text += `: ${curve.rate} ${number(v[i])}`;
    if (wl[i] !== null) text += `; warn ${number(wl[i])} to ${number(wh[i])}, detect ${number(dl[i])} to ${number(dh[i])}`;
    return text;
  }

  function zoom(min, max) {
    const last = Math.max(stream.last, stream.first + 1);
    const span = Math.max(max - min, 10);
    const middle = (min + max) / 2;
    min = Math.max(stream.first, middle - span / 2);
    max = Math.min(last, min + span);
    min = Math.max(stream.first, max - span);
    sight = [min, max];
    for (const chart of charts) chart.setScale("x", { min, max });
  }

  const all = () => zoom(stream.first, stream.last);

  function draw(curve) {
    const columns = decode(curve);
    const box = document.createElement("section");
    box.className = "chart";
    box.tabIndex = 0;
    const lowest = columns[1].reduce((a, b) => (b === null ? a : Math.min(a, b)), 1);
    const highest = columns[1].reduce((a, b) => (b === null ? a : Math.max(a, b)), 0);
    box.setAttribute("role", "group");
    box.setAttribute(
      "aria-label",
      `${curve.title} over time, between ${lowest.toFixed(2)} and ${highest.toFixed(2)}. Arrow keys read it, plus and minus zoom, 0 shows all.`,
    );
    const head = document.createElement("header");
    const title = document.createElement("h3");
    title.textContent = curve.title;
    const readout = document.createElement("div");
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    head.append(title, readout);
    box.append(head);
    area.append(box);
    const hidden = { points: { show: false }, stroke: () => css("--edge"), width: 1 };
    const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line") } };
    const options = {
      width: Math.max(box.clientWidth - 20, 200),
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "rates" }, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (u, min, max) => [min, max] }, y: { range: extent } },
      axes: [
        { ...axis, values: tickText, space: 90 },
        { ...axis, size: 52, space: 34, values: rateText },
      ],
      series: [
        {},
        { label: curve.rate, stroke: () => css("--curve"), width: 1.4, points: { show: false } },
        { ...hidden }, { ...hidden },
        { ...hidden, dash: [4, 4] }, { ...hidden, dash: [4, 4] },
      ],
      bands: [
        { series: [5, 4], fill: () => css("--wide") },
        { series: [3, 2], fill: () => css("--band") },
      ],
      hooks: {
        drawAxes: [lines],
        draw: [dots],
        setCursor: [(u) => { readout.textContent = told(curve, columns, u.cursor.idx); }],
        setSelect: [(u) => {
          if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
      },
    };
    const chart = new uPlot(options, columns, box);
    chart.over.addEventListener("dblclick", all);
    box.addEventListener("keydown", (event) => keys(event, chart, columns));
    charts.push(chart);
    return box;
  }

  function keys(event, chart, columns) {
    const { min, max } = chart.scales.x;
    const span = max - min;
    const move = (step) => {
      const xs = columns[0];
      let i = chart.cursor.idx;
      if (i === null || i === undefined) i = xs.findIndex((x) => x >= min);
      do { i += step; } while (i > 0 && i < xs.length - 1 && columns[1][i] === null);
      i = Math.min(Math.max(i, 0), xs.length - 1);
      if (xs[i] < min || xs[i] > max) zoom(xs[i] - span / 2, xs[i] + span / 2);
      chart.setCursor({ left: chart.valToPos(xs[i], "x"), top: chart.valToPos(columns[1][i] ?? 0.5, "y") });
    };
    const actions = {
      ArrowLeft: () => (event.shiftKey ? zoom(min - span / 4, max - span / 4) : move(-1)),
      ArrowRight: () => (event.shiftKey ? zoom(min + span / 4, max + span / 4) : move(1)),
      "+": () => zoom(min + span / 4, max - span / 4),
      "=": () => zoom(min + span / 4, max - span / 4),
      "-": () => zoom(min - span / 2, max + span / 2),
      0: all,
      Escape: all,
    };
    if (event.key in actions && !event.ctrlKey && !event.metaKey && !event.altKey) {
      actions[event.key]();
      event.preventDefault();
    }
  }

  function show(everything) {
    for (const chart of charts) chart.destroy();
    area.replaceChildren();
    charts = [];
    sight = [stream.first, stream.last];
    const few = everything ? stream.curves : stream.curves.slice(0, stream.shown);
    for (const curve of few) draw(curve);
    if (few.length < stream.curves.length) {
      const more = document.createElement("button");
      more.textContent = `show all ${stream.curves.length} curves`;
      more.addEventListener("click", () => show(true));
      area.append(more);
    }
    all();
  }

  function choose(i) {
    stream = data.streams[i];
    if (stream) show(false);
  }

  const chooser = document.getElementById("stream");
  if (chooser) chooser.addEventListener("change", () => choose(Number(chooser.value)));
  document.getElementById("all")?.addEventListener("click", all);
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => {
      const [which, since, at] = button.dataset.zoom.split(" ").map(Number);
      if (data.streams[which] !== stream) {
        choose(which);
        if (chooser) chooser.value = String(which);
      }
      const room = Math.max(2 * (at - since), 200);
      zoom(since - room, at + room);
      area.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      area.querySelector(".chart")?.focus({ preventScroll: true });
    });
  }

  const redraw = () => charts.forEach((chart) => chart.redraw(false, true));
  const fit = () => charts.forEach((chart) => {
    const width = Math.max(chart.root.parentElement.clientWidth - 20, 200);
    if (Math.abs(width - chart.width) > 1) chart.setSize({ width, height: HEIGHT });
  });
  choose(0);
  new ResizeObserver(fit).observe(area);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  matchMedia("print").addEventListener("change", () => { fit(); redraw(); });
  addEventListener("beforeprint", () => { fit(); redraw(); });
  addEventListener("afterprint", () => { fit(); redraw(); });
  window.fourrates = { charts: () => charts, stream: () => stream };
})();
