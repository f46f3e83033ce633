package pool

import "github.com/weir-dev/weir/pkg/limiter"

// Expiries are a binary heap of holders. A holder stands where it belonged when it
// was last moved: a beat only puts its expiry off, and the place is put right when
// it comes to the top. So most beats leave the heap alone.
type expiries []expiry

type expiry struct {
	at   limiter.Instant // at most when the holder expires
	slot int32
}

func (q *expiries) push(holders []holder, slot int32) {
	*q = append(*q, expiry{holders[slot].expires, slot})
	q.up(holders, int32(len(*q)-1))
}

// postpone puts the first right.
func (q *expiries) postpone(holders []holder, at limiter.Instant) {
	(*q)[0].at = at
	q.down(holders, 0)
}

func (q *expiries) remove(holders []holder, i int32) {
	last := int32(len(*q) - 1)
	moved := (*q)[last]
	*q = (*q)[:last]
	if i == last {
		return
	}
	q.set(holders, i, moved)
	q.down(holders, i)
	q.up(holders, i)
}

func (q expiries) up(holders []holder, i int32) {
	e := q[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(q[parent], holders) {
			break
		}
		q.set(holders, i, q[parent])
		i = parent
	}
	q.set(holders, i, e)
}

func (q expiries) down(holders []holder, i int32) {
	e := q[i]
	for {
		child := 2*i + 1
		if child >= int32(len(q)) {
			break
		}
		if right := child + 1; right < int32(len(q)) && q[right].before(q[child], holders) {
			child = right
		}
		if !q[child].before(e, holders) {
			break
		}
		q.set(holders, i, q[child])
		i = child
	}
	q.set(holders, i, e)
}

func (q expiries) set(holders []holder, i int32, e expiry) {
	q[i] = e
	holders[e.slot].queued = i
}

func (e expiry) before(o expiry, holders []holder) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return holders[e.slot].name < holders[o.slot].name
}
