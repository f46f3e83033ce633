// The page: it asks for the objects every two seconds, keeps the figures of the last ten minutes, and
// draws both. Texts of objects become text, never markup.
import { chart, scatter } from "./draw.js";
import { history } from "./history.js";

const interval = 2000;
const seen = history(300);
let shown = null;

const filter = document.getElementById("filter");
filter.addEventListener("input", () => shown && show(shown));

/** Returns an element with attributes and children; a string becomes text. */
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    e.setAttribute(name, value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
}

const number = (n) => (n === undefined || n === null ? "–" : Number(n).toLocaleString("en"));
const percent = (basisPoints) => (basisPoints === undefined ? "–" : (basisPoints / 100).toFixed(1) + " %");
const condition = (o, type) => (o.status?.conditions ?? []).find((c) => c.type === type);

function figures(rows) {
  return el("dl", { class: "figures" }, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function bar(part, whole, label) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  const inner = el("i");
  inner.style.width = share * 100 + "%";
  return el("div", { class: share >= 1 ? "bar full" : "bar", role: "img", "aria-label": label }, inner);
}

/** Returns the name of an object, whether it is ready and otherwise why not. */
function head(o, mode) {
  const ready = condition(o, "Ready");
  const state = ready?.status === "True" ? "good" : ready?.status === "False" ? "bad" : "warn";
  const tags = [el("span", { class: "tag " + state }, state === "good" ? "Ready" : (ready?.reason ?? "not seen by a controller"))];
  if (mode) {
    tags.push(el("span", { class: mode === "Shadow" ? "tag warn" : "tag" }, mode));
  }
  for (const type of ["KeysFull", "Saturated", "Learning", "Stalled"]) {
    if (condition(o, type)?.status === "True") {
      tags.push(el("span", { class: "tag warn" }, type));
    }
  }
  const within = condition(o, "WithinBound");
  if (within?.status === "False") {
    tags.push(el("span", { class: "tag bad" }, within.reason));
  }
  return [
    el("h3", {}, o.metadata.name, " ", el("small", {}, o.metadata.namespace)),
    { tags, why: state === "good" ? null : el("p", { class: "why" }, ready?.message ?? "no controller has reported on it") },
  ];
}

function card(o, mode, extra, body) {
  const [title, { tags, why }] = head(o, mode);
  return el("article", { class: "card", "data-name": o.metadata.namespace + "/" + o.metadata.name }, title, el("div", { class: "tags" }, tags, extra), why, body);
}

function overshoot(o) {
  if (!o) {
    return "–";
  }
  const observed = o.observed === undefined ? "not measured" : number(o.observed);
  return observed + " ≤ " + (o.bound === undefined ? "unbounded" : number(o.bound)) + (o.completeness && o.completeness !== "Complete" ? ", " + o.completeness : "");
}

function legend(...names) {
  return el("div", { class: "legend" }, names.flatMap((name, i) => [el("b", { class: "abc"[i] }, "— " + name), " "]));
}

function keys(all) {
  if (!all?.length) {
    return null;
  }
  return el("table", {}, el("tr", {}, ["hottest keys", "admitted/min", "refused/min"].map((t) => el("th", {}, t))),
    all.slice(0, 5).map((k) => el("tr", {}, el("td", { class: "hash" }, k.hash + (k.shared ? " (shared)" : "")),
      el("td", {}, number(k.admittedPerMinute)), el("td", {}, number(k.refusedPerMinute)))));
}

function policy(o) {
  const of = o.status?.enforcement;
  const grade = o.status?.guarantee?.grade;
  const extra = [
    grade ? el("span", { class: "tag", title: o.status.guarantee.reason ?? "" }, grade) : null,
    of ? el("span", { class: of.current < of.desired ? "tag warn" : "tag" }, of.current + " of " + of.desired + " pods") : null,
  ];
  return card(o, o.spec.mode, extra, (o.status?.limits ?? []).flatMap((l) => {
    const id = "policy/" + o.metadata.uid + "/" + l.name;
    const w = l.window;
    return [
      el("h4", {}, l.name, " ", el("small", { class: "none" }, l.rates ?? "")),
      w ? bar(w.used, w.limit, w.used + " of " + w.limit + " used") : null,
      figures([
        ["window", w ? number(w.used) + " of " + number(w.limit) + " used" : "–"],
        ["admitted, rejected /s", number(l.admittedPerSecond) + ", " + number(l.rejectedPerSecond)],
        ["overshoot Δ", overshoot(l.overshoot)],
        ["unused U", percent(l.underUtilization?.observedBasisPoints)],
        ["requests per store call", l.requestsPerRoundTrip ?? "–"],
      ]),
      chart(seen.of(id), ["admitted", "rejected"]), legend("admitted/s", "rejected/s"),
      chart(seen.of(id), ["unused", "overshoot"]), legend("unused %", "overshoot"),
      keys(l.hottestKeys),
    ];
  }));
}

function pool(o) {
  const s = o.status ?? {};
  const past = seen.of("pool/" + o.metadata.uid);
  return card(o, o.spec.mode, [s.holders === undefined ? null : el("span", { class: "tag" }, number(s.holders) + " pods")], [
    s.limit ? bar(s.inFlight ?? 0, s.limit.current, s.inFlight + " of " + s.limit.current + " in flight") : null,
    figures([
      ["in flight of limit", number(s.inFlight) + " of " + number(s.limit?.current)],
      ["limit fixed by", s.limit?.fixedBy ?? "–"],
      ["queued", number(s.queued)],
      ["admitted, rejected /s", number(s.admittedPerSecond) + ", " + number(s.rejectedPerSecond)],
      ["latency, at rest", number(s.latency?.currentMicroseconds) + " µs, " + number(s.latency?.baselineMicroseconds) + " µs"],
      ["overshoot Δ", overshoot(s.overshoot)],
      ["unused U", percent(s.underUtilization?.observedBasisPoints)],
    ]),
    chart(past, ["limit", "rejected", "inFlight"]), legend("limit", "rejected/s", "in flight"),
    el("h4", {}, "Limit against latency"),
    scatter(past.filter((p) => p.latency !== undefined && p.limit !== undefined).map((p) => ({ x: p.latency / 1000, y: p.limit, title: "" })), "latency, ms", "limit"),
  ]);
}

function budget(o) {
  const s = o.status ?? {};
  const a = s.allocation;
  const id = "budget/" + o.metadata.uid;
  return card(o, "", [s.root ? el("span", { class: "tag" }, "root " + (s.root.member ?? s.root.state)) : null], [
    a ? bar(a.granted, a.limit, a.granted + " of " + a.limit + " granted") : null,
    figures([
      ["granted of limit", a ? number(a.granted) + " of " + number(a.limit) : "–"],
      ["overshoot Δ", overshoot(s.overshoot)],
      ["unused U", percent(s.underUtilization?.observedBasisPoints)],
    ]),
    el("table", {}, el("tr", {}, ["member", "state", "granted", "used", "slice"].map((t) => el("th", {}, t))),
      (s.members ?? []).map((m) => el("tr", {}, [m.name, m.state, number(m.granted), number(m.used), number(m.slice)].map((t) => el("td", {}, t))))),
    chart(seen.of(id), ["granted", "used"]), legend("granted", "used"),
  ]);
}

/** Keeps the figures of now. */
function note(all) {
  for (const o of all.policies ?? []) {
    for (const l of o.status?.limits ?? []) {
      seen.add("policy/" + o.metadata.uid + "/" + l.name, all.readAt, {
        admitted: l.admittedPerSecond, rejected: l.rejectedPerSecond, overshoot: l.overshoot?.observed,
        unused: l.underUtilization?.observedBasisPoints === undefined ? undefined : l.underUtilization.observedBasisPoints / 100,
      });
    }
  }
  for (const o of all.pools ?? []) {
    const s = o.status ?? {};
    seen.add("pool/" + o.metadata.uid, all.readAt, { limit: s.limit?.current, inFlight: s.inFlight, rejected: s.rejectedPerSecond, latency: s.latency?.currentMicroseconds });
  }
  for (const o of all.budgets ?? []) {
    const used = (o.status?.members ?? []).reduce((sum, m) => sum + (m.used ?? 0), 0);
    seen.add("budget/" + o.metadata.uid, all.readAt, { granted: o.status?.allocation?.granted, used });
  }
}

function costs(policies) {
  return policies.flatMap((o) => (o.status?.limits ?? []).flatMap((l) => {
    const x = parseFloat(l.requestsPerRoundTrip);
    const unused = l.underUtilization?.observedBasisPoints;
    if (!(x > 0) || unused === undefined) {
      return [];
    }
    return [{ x, y: 100 - unused / 100, over: (l.overshoot?.observed ?? 0) > 0, title: o.metadata.namespace + "/" + o.metadata.name + " " + l.name }];
  }));
}

function show(all) {
  const wanted = filter.value.trim().toLowerCase();
  const chosen = (objects) => (objects ?? []).filter((o) => (o.metadata.namespace + "/" + o.metadata.name).toLowerCase().includes(wanted));
  for (const [section, objects, draw] of [["policies", all.policies, policy], ["pools", all.pools, pool], ["budgets", all.budgets, budget]]) {
    const cards = chosen(objects).map(draw);
    document.querySelector("#" + section + " .cards").replaceChildren(...(cards.length ? cards : [el("p", { class: "none" }, "none")]));
  }
  document.getElementById("plot").replaceChildren(scatter(costs(chosen(all.policies)), "requests per store call", "usable, %", true));
  document.getElementById("cluster").textContent = all.cluster;
  complain(all.errors ?? []);
}

function complain(errors) {
  const e = document.getElementById("errors");
  e.hidden = errors.length === 0;
  e.textContent = errors.join("\n");
}

async function refresh() {
  const read = document.getElementById("read");
  try {
    const answer = await fetch("objects");
    if (!answer.ok) {
      throw new Error(await answer.text());
    }
    shown = await answer.json();
    note(shown);
    show(shown);
    read.className = "";
    read.textContent = "read at " + new Date(shown.readAt).toLocaleTimeString("en-GB");
  } catch (error) {
    read.className = "late";
    read.textContent = "not current";
    complain([error.message]);
  }
  setTimeout(refresh, interval);
}

refresh();
