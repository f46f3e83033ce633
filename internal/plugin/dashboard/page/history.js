/** Returns a history that keeps the last `most` points of each series. */
export function history(most) {
  const series = new Map();
  return {
    /** Adds a point, unless there is one of the same time. */
    add(id, at, point) {
      const all = series.get(id) ?? [];
      if (all.at(-1)?.at !== at) {
        all.push({ at, ...point });
        series.set(id, all.slice(-most));
      }
    },
    /** Returns the points of a series, the oldest first. */
    of: (id) => series.get(id) ?? [],
  };
}
