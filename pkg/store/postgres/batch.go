package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/pkg/limiter"
)

// mayShare reports whether sql/batch.sql can decide a command.
func mayShare(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && p.Algorithm == limiter.FixedWindow && len(p.Rates) == 1 &&
		!p.Rates[0].Monthly && p.Fairness.Default == 0
}

// batchArgs returns the arguments of sql/batch.sql.
func batchArgs(asks []*ask) []any {
	const ints = 9
	keys, borns, all := make([]string, len(asks)), make([]string, len(asks)), make([]string, len(asks))
	firsts, resumes := make([]bool, len(asks)), make([]bool, len(asks))
	var list [ints][]int64
	for i := range list {
		list[i] = make([]int64, len(asks))
	}
	for i, a := range asks {
		r := a.params.Rates[0]
		keys[i], all[i], borns[i] = a.key, terms(a.params), bornText(a.params.Retention.Born)
		firsts[i], resumes[i] = a.cmd.First, a.params.Retention.Resume
		for j, v := range [ints]int64{
			a.cmd.Min, a.cmd.Want, a.params.Generation, r.Limit, int64(r.Window), r.Burst, int64(r.Offset),
			int64(a.params.Since), int64(a.cmd.Floor),
		} {
			list[j][i] = v
		}
	}
	return []any{
		keys, list[0], list[1], firsts, list[2], list[3], list[4], list[5], list[6], list[7], list[8], borns, resumes, all,
	}
}

// bornText writes the names as Postgres writes an array.
func bornText(ids []limiter.MemoryID) string {
	if len(ids) == 0 {
		return "{}"
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprint(int64(id))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// A batch is what sql/batch.sql returns.
type batch struct {
	replies []int64 // of each command that it decided
	renew   bool    // the lease of the clock ends soon
}

func readBatch(row pgx.Row) (b batch, err error) {
	var renew *bool
	err = row.Scan(&b.replies, &renew)
	b.renew = renew != nil && *renew
	return b, err
}

// answer hands the replies out.
func (b batch) answer(asks []*ask) error {
	const each = 19 // the place of the command, and a reply with one window
	if len(b.replies)%each != 0 {
		return fmt.Errorf("weir.batch answered %d integers, which are no results", len(b.replies))
	}
	for reply := range slices.Chunk(b.replies, each) {
		if reply[0] < 1 || reply[0] > int64(len(asks)) {
			return fmt.Errorf("weir.batch answered command %d of %d", reply[0], len(asks))
		}
		res, err := decode(reply[1:])
		if err != nil {
			return err
		}
		a := asks[reply[0]-1]
		a.res, a.decided = res, true
	}
	return nil
}
