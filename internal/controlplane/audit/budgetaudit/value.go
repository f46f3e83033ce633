package budgetaudit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/controlplane/audit"
)

// A valueCount is what is known of one value over all members.
type valueCount struct {
	audit.KeyCount       // of the members that name it
	names          int   // how many do
	hidden         int64 // what the others have admitted of it at most
}

// measure sets what the rows say, which all the members have to have sent.
func (w *valueWindow) measure(members []string) {
	w.fresh, w.wanted = true, nil
	w.outcome = Outcome{Index: w.index}
	out := &w.outcome
	for _, m := range members {
		if row, ok := w.rows[m]; !ok || !row.Complete {
			out.Silent = append(out.Silent, m)
		}
	}
	var hidden int64
	for _, row := range w.rows {
		out.Admitted, out.Refused = out.Admitted+row.Admitted, out.Refused+row.Refused
		hidden += row.Hidden
	}
	counts := w.counts(hidden)
	for _, c := range counts {
		limit := w.limitOf(c.Hash)
		out.Over = max(out.Over, c.Admitted-limit)
		if c.names == len(w.rows) && limit > 0 {
			unused := max(0, min(c.Admitted+c.Refused, limit)-c.Admitted)
			out.Unused = max(out.Unused, int32(float64(unused)/float64(limit)*audit.BasisPoints))
		}
	}
	if len(out.Silent) > 0 {
		return
	}
	var fits bool
	w.wanted, fits = w.want(counts)
	for m, row := range w.rows {
		if !fits || !row.names(w.wanted) || hidden > w.limit && row.Hidden > w.limit/int64(len(w.rows)) {
			out.Silent = append(out.Silent, m)
		}
	}
	slices.Sort(out.Silent)
	out.Measured = len(out.Silent) == 0
}

// counts returns what is known of the values that members name, and of those that have a limit of
// their own which may be exceeded although none names them.
func (w *valueWindow) counts(hidden int64) map[string]valueCount {
	counts := map[string]valueCount{}
	for _, row := range w.rows {
		for _, k := range row.Keys {
			c, known := counts[k.Hash]
			if !known {
				c.Hash, c.hidden = k.Hash, hidden
			}
			c.Admitted, c.Refused = c.Admitted+k.Admitted, c.Refused+k.Refused
			c.names, c.hidden = c.names+1, c.hidden-row.Hidden
			counts[k.Hash] = c
		}
	}
	for hash, limit := range w.own {
		if _, named := counts[hash]; !named && hidden > limit {
			counts[hash] = valueCount{KeyCount: audit.KeyCount{Hash: hash}, hidden: hidden}
		}
	}
	return counts
}

// want returns the values that have to be known exactly, ascending: those that may be beyond the
// limit and the most refused. It returns false when not all of the former fit.
func (w *valueWindow) want(counts map[string]valueCount) ([]string, bool) {
	var beyond, refused []valueCount
	for c := range maps.Values(counts) {
		switch {
		case c.Admitted+c.hidden > w.limitOf(c.Hash):
			beyond = append(beyond, c)
		case c.Refused > 0:
			refused = append(refused, c)
		}
	}
	slices.SortFunc(refused, func(a, b valueCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	beyond = slices.DeleteFunc(beyond, func(c valueCount) bool { return c.names == len(w.rows) })
	fits := len(beyond) <= MaxWanted-maxRefused
	chosen := slices.Concat(beyond[:min(len(beyond), MaxWanted-maxRefused)], refused[:min(len(refused), maxRefused)])
	hashes := make([]string, len(chosen))
	for i, c := range chosen {
		hashes[i] = c.Hash
	}
	slices.Sort(hashes)
	return hashes, fits
}

// names reports whether the row names all of the values, so that their counts are exact.
func (r *ValueRow) names(hashes []string) bool {
	if len(hashes) == 0 {
		return true
	}
	named := make(map[string]struct{}, len(r.Keys))
	for _, k := range r.Keys {
		named[k.Hash] = struct{}{}
	}
	for _, hash := range hashes {
		if _, ok := named[hash]; !ok {
			return false
		}
	}
	return true
}
