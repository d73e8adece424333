// Draws the rates of the stream that is chosen. Data: see fourrates/report/charts.py, function drawing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const area = document.getElementById("charts");
  const HEIGHT = 190;
  let charts = [];
  let stream = null;
  let sight = [0, 1]; // the first and the last event that are shown

  const { css, drawMarks, motion, onKey, quantile, rateText, whole } = fourratesChart;

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
    const texts = (first, last) => splits.map((x) => iso(timeOf(x), 19).slice(first, last));
    const days = texts(0, 10);
    if (span > 3 * 86400 && new Set(days).size === days.length) return days;
    return span > 7200 ? texts(5, 16) : texts(11, 19);
  }

  function decode(curve) {
    let event = 0;
    const xs = curve.x.map((step) => (event += step));
    const back = (list) => (list ? list.map((v) => (v === null ? null : v / 1e4)) : xs.map(() => null));
    return [xs, back(curve.v), back(curve.wl), back(curve.wh), back(curve.dl), back(curve.dh)];
  }

  // The band is where it started, as far as that is known; without that it is the warning before the alarm.
  const marks = () => stream.drifts.map((drift, i) => {
    const [first, last] = drift.between ?? [drift.since, drift.at];
    return { found: drift.at, first, last, started: drift.started ?? null, recovery: drift.calm, number: i + 1 };
  });

  // Dots for what lies outside its bounds, on top of the curve.
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
    const { setSelect, ...shared } = fourratesChart.options({
      key: "rates",
      zoom,
      values: { x: { values: tickText, space: 90 }, y: { size: 52, space: 34, values: rateText } },
    });
    const options = {
      ...shared,
      width: Math.max(box.clientWidth - 20, 200),
      height: HEIGHT,
      scales: { x: { time: false, range: (u, min, max) => [min, max] }, y: { range: extent } },
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
        drawAxes: [(u) => drawMarks(u, marks())],
        draw: [dots],
        setCursor: [(u) => { readout.textContent = told(curve, columns, u.cursor.idx); }],
        setSelect: [setSelect],
      },
    };
    const chart = new uPlot(options, columns, box);
    chart.over.addEventListener("dblclick", all);
    box.addEventListener("keydown", (event) => onKey(event, chart, { zoom, all }));
    charts.push(chart);
    return box;
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
      area.scrollIntoView({ behavior: motion() });
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
