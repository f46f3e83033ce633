package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

const (
	// maxFlights is how many messages are under way at a time. The next has all that is
	// wanted meanwhile.
	maxFlights = 4
	// busy is how long nothing is asked for of a value for which the coordinator had no time.
	busy = 25 * time.Millisecond
)

// A message is one that is under way.
type message struct {
	era    int
	params ledger.Params
	to     []*value
	needs  []need
	asks   []keys.KeyAsk
	sent   int64
}

// enqueue has a value be in the next message.
func (r *Region) enqueue(v *value, now int64) {
	if !v.queued && !v.flying {
		v.queued = true
		r.queue = append(r.queue, v)
	}
	r.send(now)
}

// send sends what is in the queue. A coordinator that is away is tried with one message at a
// time.
func (r *Region) send(now int64) {
	for r.flights < maxFlights && !r.closed && (r.link.cause == nil || r.flights == 0) {
		m := r.message(now)
		if len(m.to) == 0 {
			return
		}
		r.flights++
		r.work.Go(func() { r.exchange(m) })
	}
}

// message takes the values that are first in the queue. It leaves out those
// for which nobody waits, and which need no units ahead any more.
func (r *Region) message(now int64) *message {
	m := &message{era: r.era, params: r.config.Params}
	taken, members := 0, len(m.params.Members)
	for _, v := range r.queue {
		if len(m.to) == keys.MaxAsks {
			break
		}
		taken++
		v.queued = false
		ahead := v.purse.Ahead(now, members)
		if v.need.done == nil && ahead == 0 {
			continue
		}
		free := v.purse
		free.Units, v.claimed = max(0, free.Units-v.claimed), 0
		least := free.Lacks(now, v.need.least)
		want := max(least, free.Lacks(now, v.need.want)+ahead)
		m.asks = append(m.asks, keys.KeyAsk{Hash: v.hash, Ask: keys.Ask{Min: least, Want: min(want, limiter.MaxLimit)}})
		m.to, m.needs = append(m.to, v), append(m.needs, v.need)
		v.need, v.flying = need{}, true
	}
	r.queue = slices.Delete(r.queue, 0, taken)
	return m
}

// exchange sends a message, and enters the answer.
func (r *Region) exchange(m *message) {
	r.mu.Lock()
	timeout, id, member := r.config.Timeout, r.config.ID, r.config.Member
	r.counts.messages++
	r.counts.asks += int64(len(m.asks))
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	m.sent = r.instant()
	reply, err := r.coordinator.ApplyKeys(ctx, id, m.params, keys.Request{Member: member, Asks: m.asks})
	if err == nil && reply.Reason == ledger.Granted && len(reply.Grants) != len(m.asks) {
		err = fmt.Errorf("budget %s: %d keys are answered of %d", id, len(reply.Grants), len(m.asks))
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !away(err) {
		err = &store.UnavailableError{Store: "the coordinator of budget " + id, Cause: context.DeadlineExceeded}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.instant()
	r.flights--
	switch {
	case m.era != r.era: // windows had another length
	case err != nil:
		if r.link.fail(now, err, r.config.Probe) {
			r.counts.outages++
		}
	default:
		r.link.hear(&reply, m.sent, now)
	}
	for i, v := range m.to {
		v.flying = false
		if err == nil && m.era == r.era && reply.Reason == ledger.Granted {
			r.fill(v, &m.asks[i], &reply, &reply.Grants[i], m.sent, now)
		}
		v.claimed = m.needs[i].want
		if m.needs[i].done == v.expected {
			v.expected = nil
		}
		m.needs[i].settle()
		if v.need.done != nil && !v.queued {
			v.queued = true
			r.queue = append(r.queue, v)
		}
	}
	if r.link.cause != nil {
		r.giveUp()
	}
	r.send(now)
}

// fill enters what was granted of a value.
func (r *Region) fill(v *value, a *keys.KeyAsk, reply *keys.Reply, g *keys.Grant, sent, now int64) {
	r.counts.granted += g.Units
	if g.Lacks {
		v.later = now + int64(busy)
		return
	}
	v.purse = v.purse.Fill(keys.Answer{
		Index: reply.Epoch.Index, Ends: account.DeadlineOf(sent, reply.ExpiresIn),
		Units: g.Units, Remaining: g.Remaining, Least: a.Min,
	})
}

// giveUp has those look again that wait for a coordinator that is away.
func (r *Region) giveUp() {
	for _, v := range r.queue {
		v.queued, v.expected = false, nil
		v.need.settle()
	}
	r.queue = r.queue[:0]
}

// away reports whether an error says that the coordinator could not be reached.
func away(err error) bool {
	_, ok := errors.AsType[*store.UnavailableError](err)
	return ok
}
