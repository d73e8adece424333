"use strict";
// The charts of the report and of the live page: axes, findings under the curve, and how they are read and zoomed together.
const drawing = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Shares between 0 and 1, with the digits of the step.
  function rateText(u, splits, place, space, step) {
    let digits = 1;
    while (digits < 5 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-9) digits++;
    return splits.map((x) => (x < -1e-9 || x > 1 + 1e-9 ? "" : Math.abs(x).toFixed(digits)));
  }

  // Draw inside the plot, in device pixels.
  function inside(u, draw) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    draw(ctx, bbox);
    ctx.restore();
  }

  function stroke(ctx, colour, alpha, width, dash, points) {
    ctx.strokeStyle = ctx.fillStyle = css(colour);
    ctx.globalAlpha = alpha;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.stroke();
  }

  // Findings under the curve, with a line at each alarm, a band for its start, its sign if it has one. A recovery is blue and dashed,
  // a drift orange and solid; a deployment is a thin line with the name of the version.
  function drawMarks(u, marks, deployments = []) {
    inside(u, (ctx, bbox) => {
      const { min, max } = u.scales.x;
      const shown = marks.filter((one) => one.found >= min && Math.min(one.first, one.found) <= max);
      const few = shown.filter((one) => one.found <= max).length <= 20;
      const x = (value) => u.valToPos(value, "x", true);
      const [top, bottom, right] = [bbox.top, bbox.top + bbox.height, bbox.left + bbox.width];
      const line = (value, ...style) => stroke(ctx, ...style, [[x(value), top], [x(value), bottom]]);
      const write = (text, place, y) => {
        const left = place > right - (10 + 8 * text.length) * devicePixelRatio;
        ctx.textAlign = left ? "right" : "left";
        ctx.fillText(text, place + (left ? -5 : 5) * devicePixelRatio, y);
      };
      for (const one of deployments.filter((one) => one.x >= min && one.x <= max)) {
        line(one.x, "--soft", 1, 1.4, [1, 3]);
        if (bbox.height > 150 * devicePixelRatio) write(one.version, x(one.x), bottom - 6 * devicePixelRatio);
      }
      let free = -Infinity; // the first place for the next sign that does not touch the last one
      for (const one of shown) {
        const colour = one.recovery ? "--recovery" : "--drift";
        ctx.fillStyle = css(colour);
        ctx.globalAlpha = 0.17;
        ctx.fillRect(x(one.first), top, Math.max(x(one.last) - x(one.first), devicePixelRatio), bbox.height);
        if (one.started !== null && one.started !== undefined && few) line(one.started, colour, 0.8, 1, [2, 3]);
        line(one.found, colour, 1, few ? 2 : 1, one.recovery ? [7, 4] : []);
        if (!one.sign || x(one.found) < free) continue;
        free = x(one.found) + 20 * devicePixelRatio;
        write(one.sign, x(one.found), top + 12 * devicePixelRatio);
      }
    });
  }

  // Times along an axis: days if they are a day or more apart, else the clock and, if it changes, the day. A page in UTC may be
  // read on any day and has room, so there the first has its day, too.
  function timeText(utc) {
    return (u, splits, place, space, step) => {
      let day = null;
      return splits.map((seconds) => {
        const ahead = utc ? 0 : 60 * new Date(seconds * 1000).getTimezoneOffset();
        const text = new Date((seconds - ahead) * 1000).toISOString();
        const [date, clock] = [text.slice(0, 10), text.slice(11, step < 60 ? 19 : 16)];
        const fresh = date !== day && (utc || day !== null);
        day = date;
        return step >= 86400 ? date : !fresh ? clock : utc ? `${date.slice(5)} ${clock}` : date.slice(5);
      });
    };
  }

  const wholeText = (u, splits) => splits.map((x) => (Number.isInteger(x) ? x.toLocaleString("en-US") : ""));

  // An axis that has these shares, with some room.
  function around(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = Math.max(0.06 * (high - low), 0.01);
    return values.length ? [Math.max(low - room, -0.02), Math.min(high + room, 1.02)] : [0, 1];
  }

  const motion = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

  // Charts over one axis. A page says by `ends()` from where to where it goes, and by `timed()` whether in seconds.
  class Charts {
    constructor({ utc = false } = {}) {
      this.utc = utc;
      this.charts = []; // {plot, box, columns}
      this.sight = null; // [first, last] when zoomed
      this.observer = new ResizeObserver(() => this.fit());
      this.scheme = matchMedia("(prefers-color-scheme: dark)");
      this.redraw = () => this.charts.forEach(({ plot }) => plot.redraw(false, true));
      this.scheme.addEventListener("change", this.redraw);
    }

    close() {
      this.observer.disconnect();
      this.scheme.removeEventListener("change", this.redraw);
      this.clear();
    }

    clear() {
      for (const { plot } of this.charts) plot.destroy();
      this.charts = [];
    }

    // A chart at the end of `area`. `columns()` are its data in sight, `describe(plot, i)` reads a place of them or is null,
    // `under(plot)` draws below the curves and `over(plot)` above; `x`, `y` and `more` are about the axes.
    add(area, { label, head, height, columns, describe, series, bands, scales, x, y, more = [], padding, under, over }) {
      const [box, header, readout] = ["section", "header", "span"].map((tag) => document.createElement(tag));
      box.className = "chart";
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.ariaLabel = `${label}, over time. Arrow keys read it, plus and minus zoom, 0 shows all.`;
      readout.className = "readout num";
      readout.ariaLive = "polite";
      header.append(...head.filter(Boolean), readout);
      box.append(header);
      area.append(box);
      const timed = this.timed();
      const line = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false } };
      const plot = new uPlot({
        width: this.width(box),
        height,
        padding,
        legend: { show: false },
        cursor: { sync: { key: "charts" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
        tzDate: this.utc ? (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : undefined,
        series: [{}, ...series],
        bands,
        scales: { x: { time: timed, range: (u, min, max) => [min, max] }, ...scales },
        axes: [
          { ...line, size: 26, space: this.utc ? 90 : 70, values: timed ? timeText(this.utc) : wholeText, ...x },
          { ...line, size: 46, space: 34, gap: 3, values: rateText, ...y },
          ...more.map((axis) => ({ ...line, ...axis })),
        ],
        hooks: {
          drawAxes: [under],
          draw: over ? [over] : [],
          setCursor: [(u) => {
            const { idx, left } = u.cursor;
            const text = idx === null || idx === undefined || left < 0 ? "" : describe(u, idx);
            if (text !== null && text !== readout.textContent) readout.textContent = text;
          }],
          setSelect: [(u) => {
            if (u.select.width > 4) this.zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          }],
        },
      }, columns(), box);
      plot.over.addEventListener("dblclick", () => this.showAll());
      box.addEventListener("keydown", (event) => { if (event.target === box) this.onKey(event, plot); });
      const chart = { plot, box, columns };
      this.charts.push(chart);
      return chart;
    }

    width(box) { return Math.max(box.clientWidth - 12, 180); }

    fit() {
      for (const { plot, box } of this.charts) {
        if (Math.abs(this.width(box) - plot.width) > 1) plot.setSize({ width: this.width(box), height: plot.height });
      }
    }

    // What is in sight, drawn anew.
    scale() {
      const [min, max] = this.sight ?? this.ends();
      for (const { plot, columns } of this.charts) {
        plot.setData(columns(), false);
        plot.setScale("x", { min, max });
      }
    }

    zoom(min, max) {
      const [first, last] = this.ends();
      const width = Math.min(Math.max(max - min, (last - first) / 1000), last - first);
      min = Math.min(Math.max((min + max - width) / 2, first), last - width);
      this.sight = width >= last - first ? null : [min, min + width];
      this.scale();
    }

    showAll() {
      this.sight = null;
      this.scale();
    }

    // Arrows read the first curve, plus and minus zoom, shift with arrows moves, 0 shows all.
    onKey(event, plot) {
      const { min, max } = plot.scales.x;
      const width = max - min;
      const read = (step) => {
        const [xs, values] = plot.data;
        let i = plot.cursor.idx ?? xs.findIndex((x) => x >= min);
        do { i += step; } while (i > 0 && i < xs.length - 1 && (values[i] ?? null) === null);
        i = Math.min(Math.max(i, 0), xs.length - 1);
        if (xs[i] < min || xs[i] > max) this.zoom(xs[i] - width / 2, xs[i] + width / 2);
        plot.setCursor({ left: plot.valToPos(xs[i], "x"), top: plot.valToPos(values[i] ?? 0.5, "y") });
      };
      const move = (step) => (event.shiftKey ? this.zoom(min + (step * width) / 4, max + (step * width) / 4) : read(step));
      const closer = () => this.zoom(min + width / 4, max - width / 4);
      const all = () => this.showAll();
      const actions = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), "+": closer, "=": closer, "-": () => this.zoom(min - width / 2, max + width / 2), 0: all, Escape: all };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
      actions[event.key]();
      event.preventDefault();
    }
  }

  return { css, inside, stroke, drawMarks, around, motion, Charts };
})();
