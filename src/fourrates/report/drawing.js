"use strict";
// The common part of the charts of the report and of the live page: axes, findings under the curve, and the keys.
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

  // Arrows read the first curve, plus and minus zoom, shift with arrows moves, 0 shows all.
  function onKey(event, plot, { zoom, all }) {
    const { min, max } = plot.scales.x;
    const width = max - min;
    const missing = (value) => value === null || value === undefined;
    const read = (step) => {
      const [xs, values] = plot.data;
      let i = plot.cursor.idx ?? xs.findIndex((x) => x >= min);
      do { i += step; } while (i > 0 && i < xs.length - 1 && missing(values[i]));
      i = Math.min(Math.max(i, 0), xs.length - 1);
      if (xs[i] < min || xs[i] > max) zoom(xs[i] - width / 2, xs[i] + width / 2);
      plot.setCursor({ left: plot.valToPos(xs[i], "x"), top: plot.valToPos(values[i] ?? 0.5, "y") });
    };
    const move = (step) => (event.shiftKey ? zoom(min + (step * width) / 4, max + (step * width) / 4) : read(step));
    const closer = () => zoom(min + width / 4, max - width / 4);
    const actions = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), "+": closer, "=": closer, "-": () => zoom(min - width / 2, max + width / 2), 0: all, Escape: all };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
  }

  const motion = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
  return { css, rateText, inside, stroke, drawMarks, onKey, motion };
})();
