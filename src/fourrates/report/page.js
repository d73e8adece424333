"use strict";
// Draws the rates of the stream that is chosen. Its data are those of fourrates/report/charts.py, function drawing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const whole = (x) => Math.round(x).toLocaleString("en-US");
  const ZOOMED = [2 / 3, 1 / 5]; // of the whole; parts smaller than this are drawn by the finer curves
  let stream = null;

  function drawBand(u, bands) {
    drawing.inside(u, (ctx) => {
      for (const { start, end, low, level, high } of bands) {
        const [left, right] = [start, end].map((at) => u.valToPos(at, "x", true));
        const [top, middle, bottom] = [high, level, low].map((share) => u.valToPos(share, "y", true));
        ctx.fillStyle = drawing.css("--band");
        ctx.fillRect(left, top, right - left, bottom - top);
        drawing.stroke(ctx, "--edge", 1, 1, [], [[left, middle], [right, middle]]);
      }
    });
  }

  class Rates extends drawing.Charts {
    ends() { return stream.ends; }

    timed() { return stream.timed; }

    draw(rate, area, height) {
      let curve, accuracy;
      const drawn = stream.marks.filter((mark) => mark.drawn);
      const about = drawn.filter((mark) => mark.rates.includes(rate.rate));
      const title = document.createElement("h3");
      title.textContent = rate.title;
      const { y } = rate.curves[0];
      const line = { points: { show: false }, spanGaps: true };
      this.add(area, {
        label: y.length ? `${rate.title}, between ${Math.min(...y).toFixed(2)} and ${Math.max(...y).toFixed(2)}` : `${rate.title}: no observations`,
        head: [title],
        height,
        padding: [8, 40, 0, 0],
        columns: () => {
          const [first, last] = this.sight ?? stream.ends;
          const fine = ZOOMED.filter((part) => last - first < part * (stream.ends[1] - stream.ends[0])).length;
          [curve, accuracy] = [rate.curves[fine], rate.rate === "error" ? { x: [], y: [] } : stream.accuracy[fine]];
          return uPlot.join([[curve.x, curve.y], [accuracy.x, accuracy.y]]);
        },
        series: [
          { ...line, stroke: () => drawing.css("--curve"), width: 1.8 },
          { ...line, stroke: () => drawing.css("--soft"), width: 1.2, dash: [2, 3] },
        ],
        scales: { y: { range: () => drawing.around([...curve.y, ...accuracy.y, ...curve.band.flatMap(({ low, high }) => [low, high])]) } },
        under: (u) => { drawBand(u, curve.band); drawing.drawMarks(u, about.length ? about : drawn, stream.deployments); },
        describe: (u, i) => {
          const at = curve.x.indexOf(u.data[0][i]);
          if (at < 0) return null; // of the accuracy
          const time = stream.timed ? `${new Date(curve.x[at] * 1000).toISOString().slice(0, 16).replace("T", " ")}, ` : "";
          return `${time}event ${whole(curve.event[at])}: ${rate.rate} ${curve.y[at].toFixed(3)} of ${whole(curve.n)}`;
        },
      });
    }

    show() {
      this.clear();
      find("chart").replaceChildren();
      find("charts").replaceChildren();
      const first = stream.rates[Number(find("rate").value)];
      this.draw(first, find("chart"), innerWidth < 640 ? 240 : 320);
      if (find("others").open) for (const rate of stream.rates.filter((one) => one !== first)) this.draw(rate, find("charts"), 170);
      this.scale();
    }

    choose(i) {
      stream = data.streams[i];
      if (!stream) return;
      this.sight = null;
      find("rate").replaceChildren(...stream.rates.map((rate, place) => new Option(rate.rate, place)));
      this.show();
      this.observer.observe(find("chart"));
    }
  }

  const rates = new Rates({ utc: true });
  const chooser = find("stream");
  chooser?.addEventListener("change", () => rates.choose(Number(chooser.value)));
  find("rate")?.addEventListener("change", () => rates.show());
  find("all")?.addEventListener("click", () => rates.showAll());
  find("others")?.addEventListener("toggle", () => rates.show());
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => {
      const [which, place] = button.dataset.zoom.split(" ").map(Number);
      if (data.streams[which] !== stream) {
        rates.choose(which);
        if (chooser) chooser.value = String(which);
      }
      const mark = stream.marks[place], span = Math.max(3 * (mark.found - mark.first), (stream.ends[1] - stream.ends[0]) / 20);
      rates.zoom(mark.first - span, mark.found + span);
      find("chart").scrollIntoView({ behavior: drawing.motion(), block: "center" });
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
    if (card) card.scrollIntoView({ behavior: drawing.motion(), block: "nearest" });
  }
  addEventListener("hashchange", unfold);
  for (const link of document.querySelectorAll(".timeline a")) link.addEventListener("click", () => setTimeout(unfold));

  rates.choose(0);
  unfold();
  for (const name of ["beforeprint", "afterprint"]) addEventListener(name, () => { rates.fit(); rates.redraw(); });
  window.fourrates = { charts: () => rates.charts.map(({ plot }) => plot), stream: () => stream };
})();
