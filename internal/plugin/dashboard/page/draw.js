// Charts as SVG.
const space = "http://www.w3.org/2000/svg";

function svg(tag, attributes, text) {
  const e = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    e.setAttribute(name, value);
  }
  if (text !== undefined) {
    e.textContent = text;
  }
  return e;
}

const short = (n) => (Math.abs(n) >= 10_000 ? (n / 1000).toFixed(0) + "k" : Number.isInteger(n) ? String(n) : n.toPrecision(3));

/** Draws up to three series of points over time, with one scale from 0. */
export function chart(points, names) {
  const width = 360, height = 56, left = 34;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": names.join(" and ") + " over time" });
  const known = points.flatMap((p) => names.map((name) => p[name]).filter((v) => v !== undefined));
  const top = Math.max(1, ...known);
  picture.append(
    svg("line", { class: "axis", x1: left, y1: height - 4, x2: width, y2: height - 4 }),
    svg("text", { x: left - 4, y: 10, "text-anchor": "end" }, short(top)),
    svg("text", { x: left - 4, y: height - 4, "text-anchor": "end" }, "0"),
  );
  if (points.length === 0) {
    return picture;
  }
  const begin = Date.parse(points[0].at), end = Math.max(begin + 60_000, Date.parse(points.at(-1).at));
  names.forEach((name, i) => {
    const line = points.filter((p) => p[name] !== undefined).map((p) => {
      const x = left + ((Date.parse(p.at) - begin) / (end - begin)) * (width - left - 2);
      return x.toFixed(1) + "," + (height - 4 - (p[name] / top) * (height - 10)).toFixed(1);
    });
    picture.append(svg("polyline", { class: "abc"[i], points: line.join(" ") }));
  });
  return picture;
}

/** Draws points with a title each. The scale along x may be logarithmic. */
export function scatter(points, alongX, alongY, logarithmic = false) {
  const width = 480, height = 180, left = 40, bottom = 26;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "scatter", role: "img", "aria-label": alongY + " against " + alongX });
  const scale = logarithmic ? (x) => Math.log10(Math.max(1, x)) : (x) => x;
  const right = Math.max(logarithmic ? 1 : 1e-9, ...points.map((p) => scale(p.x))) * 1.05;
  const top = Math.max(1, ...points.map((p) => p.y)) * 1.05;
  picture.append(
    svg("line", { class: "axis", x1: left, y1: height - bottom, x2: width, y2: height - bottom }),
    svg("line", { class: "axis", x1: left, y1: 4, x2: left, y2: height - bottom }),
    svg("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, alongX + (logarithmic ? " (log)" : "")),
    svg("text", { x: left, y: height - 12, "text-anchor": "middle" }, logarithmic ? "1" : "0"),
    svg("text", { x: width - 4, y: height - 14, "text-anchor": "end" }, short(logarithmic ? 10 ** right : right)),
    svg("text", { x: left - 4, y: 12, "text-anchor": "end" }, short(top)),
    svg("text", { x: left + 6, y: 12 }, alongY),
  );
  for (const p of points) {
    const dot = svg("circle", {
      class: p.over ? "dot over" : "dot", r: 4,
      cx: (left + (scale(p.x) / right) * (width - left - 6)).toFixed(1), cy: (height - bottom - (p.y / top) * (height - bottom - 6)).toFixed(1),
    });
    dot.append(svg("title", {}, `${p.title} ${alongX} ${short(p.x)}, ${alongY} ${short(p.y)}`.trim()));
    picture.append(dot);
  }
  return picture;
}
