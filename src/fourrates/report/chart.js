"use strict";
// What the charts of the report and those of the live page have in common: colours, axes, marks, reading by keyboard.
const fourratesChart = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const whole = (x) => Math.round(x).toLocaleString("en-US");
  const quantile = (list, share) => [...list].sort((a, b) => a - b)[Math.round(share * (list.length - 1))];

  const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line") } };

  // Shares between 0 and 1, with as many digits as the step has.
  function rateText(u, splits, place, space, step) {
    let digits = 1;
    while (digits < 5 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-9) digits++;
    return splits.map((x) => (x < -1e-9 || x > 1 + 1e-9 ? "" : Math.abs(x).toFixed(digits)));
  }

  // Times along an axis, in UTC: days where they are a day or more apart, else the clock and, where it changes, the day.
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

  // Findings under the curve: a line where each was found, a band where it started, and its number if it has one.
  // A mark is {found, first, last, started or null} on the axis, recovery (or other good news), and perhaps a sign and a number.
  function drawMarks(u, marks) {
    const { ctx, bbox } = u;
    const { min, max } = u.scales.x;
    const dpr = devicePixelRatio;
    const shown = marks.filter((one) => one.found >= min && Math.min(one.first, one.found) <= max);
    const few = shown.filter((one) => one.found <= max).length <= 20;
    const x = (value) => u.valToPos(value, "x", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `600 ${12 * dpr}px system-ui, sans-serif`;
    const line = (value, alpha, width, dash) => {
      ctx.globalAlpha = alpha;
      ctx.lineWidth = width * dpr;
      ctx.setLineDash(dash.map((length) => length * dpr));
      ctx.beginPath();
      ctx.moveTo(x(value), bbox.top);
      ctx.lineTo(x(value), bbox.top + bbox.height);
      ctx.stroke();
    };
    let free = -Infinity; // where the next number may stand without touching the last one
    for (const one of shown) {
      ctx.strokeStyle = ctx.fillStyle = css(one.recovery ? "--calm" : "--drift");
      ctx.globalAlpha = 0.18;
      ctx.fillRect(x(one.first), bbox.top, Math.max(x(one.last) - x(one.first), dpr), bbox.height);
      if (one.started !== null && few) line(one.started, 0.8, 1, [3, 3]);
      line(one.found, 1, few ? 2 : 1, one.recovery ? [7, 4] : []);
      const place = x(one.found);
      if (place < free) continue;
      free = place + 34 * dpr;
      const left = place > bbox.left + bbox.width - 30 * dpr;
      ctx.textAlign = left ? "right" : "left";
      const sign = one.sign ?? (one.recovery ? "✓" : "▼"); // colour alone does not reach everyone
      ctx.fillText(`${sign}${one.number ?? ""}`, place + (left ? -5 : 5) * dpr, bbox.top + 12 * dpr);
    }
    ctx.restore();
  }

  // Arrows read the first curve, plus and minus zoom, shift with arrows moves, 0 shows all.
  function onKey(event, plot, { zoom, all }) {
    const { min, max } = plot.scales.x;
    const span = max - min;
    const read = (step) => {
      const [xs, values] = plot.data;
      let i = plot.cursor.idx;
      if (i === null || i === undefined) i = xs.findIndex((x) => x >= min);
      do { i += step; } while (i > 0 && i < xs.length - 1 && (values[i] === null || values[i] === undefined));
      i = Math.min(Math.max(i, 0), xs.length - 1);
      if (xs[i] < min || xs[i] > max) zoom(xs[i] - span / 2, xs[i] + span / 2);
      plot.setCursor({ left: plot.valToPos(xs[i], "x"), top: plot.valToPos(values[i] ?? 0.5, "y") });
    };
    const actions = {
      ArrowLeft: () => (event.shiftKey ? zoom(min - span / 4, max - span / 4) : read(-1)),
      ArrowRight: () => (event.shiftKey ? zoom(min + span / 4, max + span / 4) : read(1)),
      "+": () => zoom(min + span / 4, max - span / 4),
      "=": () => zoom(min + span / 4, max - span / 4),
      "-": () => zoom(min - span / 2, max + span / 2),
      0: all,
      Escape: all,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
  }

  // What all of them are made with; `zoom` takes the two ends of what was dragged over.
  function options({ key, zoom, values }) {
    return {
      legend: { show: false },
      cursor: { sync: { key }, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      axes: [{ ...axis, ...values.x }, { ...axis, ...values.y }],
      setSelect: (u) => {
        if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      },
    };
  }

  const motion = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

  return { css, drawMarks, motion, onKey, options, quantile, rateText, timeText, whole };
})();
