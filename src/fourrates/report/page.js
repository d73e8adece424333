"use strict";
// Draws the rates of the stream that is chosen. Its data are those of fourrates/report/charts.py, function drawing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const ZOOMED = [2 / 3, 1 / 5]; // of the whole; parts smaller than this are drawn by the finer curves
  let charts = [];
  let stream = null;
  let sight = [0, 1]; // the ends of the visible part

  const { css, rateText, drawMarks, onKey, motion } = drawing;
  const whole = (x) => Math.round(x).toLocaleString("en-US");

  const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line") } };

  // Times along an axis, in UTC: days if they are a day or more apart, else the clock and, if it changes, the day.
  function timeText(u, splits, place, space, step) {
    let day = "";
    return splits.map((seconds) => {
      const text = new Date(seconds * 1000).toISOString();
      const [date, clock] = [text.slice(0, 10), text.slice(11, step < 60 ? 19 : 16)];
      const same = date === day;
      day = date;
      return step >= 86400 ? date : same ? clock : `${date.slice(5)} ${clock}`;
    });
  }

  function drawBand(u, bands) {
    const { ctx, bbox } = u;
    const x = (value) => Math.min(Math.max(u.valToPos(value, "x", true), bbox.left), bbox.left + bbox.width);
    ctx.save();
    for (const one of bands) {
      const [left, right] = [x(one.start), x(one.end)];
      const [top, middle, bottom] = [one.high, one.level, one.low].map((y) => u.valToPos(y, "y", true));
      ctx.fillStyle = css("--band");
      ctx.fillRect(left, top, right - left, bottom - top);
      ctx.strokeStyle = css("--edge");
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(left, middle);
      ctx.lineTo(right, middle);
      ctx.stroke();
    }
    ctx.restore();
  }

  function zoom(min, max) {
    const [first, last] = stream.ends;
    const span = Math.max(max - min, (last - first) / 1000);
    min = Math.min(Math.max(first, (min + max - span) / 2), last - span);
    sight = [Math.max(first, min), Math.min(last, Math.max(first, min) + span)];
    for (const chart of charts) chart.fill();
  }

  const all = () => zoom(...stream.ends);
  const tick = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");

  function draw(rate, area, height) {
    const box = document.createElement("section");
    box.className = "chart";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    const head = document.createElement("header"), title = document.createElement("h3"), readout = document.createElement("div");
    title.textContent = rate.title;
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    head.append(title, readout);
    box.append(head);
    area.append(box);
    let own, whole_;
    const about = stream.marks.filter((mark) => mark.rates.includes(rate.rate) && mark.drawn);
    const marks = about.length ? about : stream.marks.filter((mark) => mark.drawn);
    const told = (i) => {
      const at = own.x.indexOf(chart.data[0][i]);
      if (at < 0) return;
      const time = stream.timed ? `${tick(own.x[at])}, ` : "";
      readout.textContent = `${time}event ${whole(own.event[at])}: ${rate.rate} ${own.y[at].toFixed(3)} of ${whole(own.n)}`;
    };
    const line = { points: { show: false }, spanGaps: true };
    const chart = new uPlot({
      legend: { show: false },
      cursor: { sync: { key: "rates" }, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      axes: [
        { ...axis, space: 90, size: 34, values: stream.timed ? timeText : (u, splits) => splits.map((x) => (Number.isInteger(x) ? whole(x) : "")) },
        { ...axis, size: 52, space: 34, values: rateText },
      ],
      width: Math.max(box.clientWidth - 20, 200),
      height,
      padding: [8, 40, 0, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: {
        x: { time: stream.timed, range: () => sight },
        y: {
          range: () => {
            const values = [...own.y, ...whole_.y, ...own.band.flatMap((one) => [one.low, one.high])];
            const low = Math.min(...values), high = Math.max(...values);
            const room = Math.max(0.06 * (high - low), 0.01);
            return values.length ? [Math.max(low - room, -0.02), Math.min(high + room, 1.02)] : [0, 1];
          },
        },
      },
      series: [
        {},
        { ...line, stroke: () => css("--curve"), width: 1.8 },
        { ...line, stroke: () => css("--soft"), width: 1.2, dash: [2, 3] },
      ],
      hooks: {
        drawAxes: [(u) => { drawBand(u, own.band); drawMarks(u, marks, stream.deployments); }],
        setCursor: [(u) => told(u.cursor.idx)],
        setSelect: [(u) => {
          if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
      },
    }, [[], [], []], box);
    chart.fill = () => {
      const fine = ZOOMED.filter((part) => sight[1] - sight[0] < part * (stream.ends[1] - stream.ends[0])).length;
      [own, whole_] = [rate.curves[fine], rate.rate === "error" ? { x: [], y: [] } : stream.accuracy[fine]];
      chart.setData(uPlot.join([[own.x, own.y], [whole_.x, whole_.y]]), false);
      chart.setScale("x", { min: sight[0], max: sight[1] });
      const [low, high] = own.y.length ? [Math.min(...own.y), Math.max(...own.y)].map((y) => y.toFixed(2)) : ["", ""];
      box.setAttribute("aria-label", own.y.length
        ? `${rate.title} over time, between ${low} and ${high}. Arrow keys read it, plus and minus zoom, 0 shows all.`
        : `${rate.title}: no observations.`);
    };
    chart.over.addEventListener("dblclick", all);
    box.addEventListener("keydown", (event) => onKey(event, chart, { zoom, all }));
    charts.push(chart);
  }

  function show() {
    for (const chart of charts) chart.destroy();
    charts = [];
    find("chart").replaceChildren();
    find("charts").replaceChildren();
    const first = stream.rates[Number(find("rate").value)];
    draw(first, find("chart"), innerWidth < 640 ? 240 : 320);
    if (find("others").open) for (const rate of stream.rates.filter((one) => one !== first)) draw(rate, find("charts"), 170);
    zoom(...sight);
  }

  function choose(i) {
    stream = data.streams[i];
    if (!stream) return;
    sight = [...stream.ends];
    find("rate").replaceChildren(...stream.rates.map((rate, place) => new Option(rate.rate, place)));
    show();
  }

  const chooser = find("stream");
  chooser?.addEventListener("change", () => choose(Number(chooser.value)));
  find("rate")?.addEventListener("change", show);
  find("all")?.addEventListener("click", all);
  find("others")?.addEventListener("toggle", show);
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => {
      const [which, place] = button.dataset.zoom.split(" ").map(Number);
      if (data.streams[which] !== stream) {
        choose(which);
        if (chooser) chooser.value = String(which);
      }
      const mark = stream.marks[place], span = Math.max(3 * (mark.found - mark.first), (stream.ends[1] - stream.ends[0]) / 20);
      zoom(mark.first - span, mark.found + span);
      find("chart").scrollIntoView({ behavior: motion(), block: "center" });
      find("chart").querySelector(".chart")?.focus({ preventScroll: true });
    });
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      getSelection().selectAllChildren(code);
      try { await navigator.clipboard.writeText(code.textContent); } catch { document.execCommand("copy"); }
      button.textContent = "Copied";
    });
  }
  // A mark of the timeline opens its card, and whatever that is folded in.
  function unfold() {
    const card = /^#f\d+$/.test(location.hash) && find(location.hash.slice(1));
    for (let one = card; one; one = one.parentElement?.closest("details")) one.open = true;
    if (card) card.scrollIntoView({ behavior: motion(), block: "nearest" });
  }
  addEventListener("hashchange", unfold);
  for (const link of document.querySelectorAll(".timeline a")) link.addEventListener("click", () => setTimeout(unfold));

  const redraw = () => charts.forEach((chart) => chart.redraw(false, true));
  const fit = () => charts.forEach((chart) => {
    const width = Math.max(chart.root.parentElement.clientWidth - 20, 200);
    if (Math.abs(width - chart.width) > 1) chart.setSize({ width, height: chart.height });
  });
  choose(0);
  unfold();
  if (stream) new ResizeObserver(fit).observe(find("chart"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const name of ["beforeprint", "afterprint"]) addEventListener(name, () => { fit(); redraw(); });
  window.fourrates = { charts: () => charts, stream: () => stream };
})();
