package connlimit

import (
	"container/list"
	"math"
)

// The room at the fleet's port follows from the bytes that the heap may take.
const (
	// podBytes is what a pod takes with its connection and its session, 49 KiB by
	// BenchmarkStreams of the coordinator, and a third more for garbage: with less room for
	// that, the runtime collects all the time.
	podBytes = 64 << 10
	// pendingBytes is what a connection takes that shook hands and sends nothing.
	pendingBytes = 40 << 10
	// pendingPart is which part of the heap is for connections without a stream that is
	// authenticated.
	pendingPart = 8
	// usualHeap is that in the container of 512Mi that the chart makes. It counts where the
	// heap has no limit.
	usualHeap = 512 << 20 / 5 * 4
)

// PodsIn returns for how many pods there is room in a heap of that many bytes.
func PodsIn(heap int64) int { return max(1, int(bytesOf(heap)/podBytes)) }

// ConnectionsIn returns for how many connections without a stream that is authenticated there
// is room in a heap of that many bytes.
func ConnectionsIn(heap int64) int { return max(2, int(bytesOf(heap)/pendingPart/pendingBytes)) }

func bytesOf(heap int64) int64 {
	if heap == math.MaxInt64 {
		return usualHeap
	}
	return heap
}

// Places are a bounded number that members of groups share. When all are taken, the group
// that has the most gives one up for a group that has fewer ("longest queue drop"; Suter,
// Lakshman, Stiliadis and Choudhury, IEEE INFOCOM 1998). So one group alone may take all,
// and keeps no other from its fair share. It is not safe for concurrent use.
type Places[G comparable, M any] struct {
	Most   int // of all groups together
	each   int // of one group
	gives  func(*list.List) *list.Element
	Taken  int
	groups map[G]*list.List // of places, in the order in which they were taken
}

// A Place is that of a member.
type Place[G comparable, M any] struct {
	group  G
	Member M
	at     *list.Element // nil once it is free
}

// NewPlaces returns places. A group gives up the one of its own that gives picks: the oldest
// (Front) or the newest (Back).
func NewPlaces[G comparable, M any](most, each int, gives func(*list.List) *list.Element) *Places[G, M] {
	return &Places[G, M]{Most: most, each: each, gives: gives, groups: map[G]*list.List{}}
}

// Take returns a place for a member of a group, or nil where the group may have no more. If
// givenUp is not nil, it was given up for that place, and is free.
func (p *Places[G, M]) Take(group G, member M) (got, givenUp *Place[G, M]) {
	own := p.Of(group)
	if own >= p.each {
		return nil, nil
	}
	if p.Taken >= p.Most {
		largest := p.largest()
		if largest == nil || largest.Len() < own+2 { // it would have fewer than the other then
			return nil, nil
		}
		givenUp = p.gives(largest).Value.(*Place[G, M]) //nolint:forcetypeassert // nothing else is in it
		p.Free(givenUp)
	}
	in := p.groups[group]
	if in == nil {
		in = list.New()
		p.groups[group] = in
	}
	p.Taken++
	got = &Place[G, M]{group: group, Member: member}
	got.at = in.PushBack(got)
	return got, givenUp
}

// Free gives a place back, once.
func (p *Places[G, M]) Free(old *Place[G, M]) {
	if old == nil || old.at == nil {
		return
	}
	in := p.groups[old.group]
	in.Remove(old.at)
	old.at = nil
	p.Taken--
	if in.Len() == 0 {
		delete(p.groups, old.group)
	}
}

// Of returns how many places a group has.
func (p *Places[G, M]) Of(group G) int {
	if in := p.groups[group]; in != nil {
		return in.Len()
	}
	return 0
}

// largest returns the group with the most places, nil for none.
func (p *Places[G, M]) largest() (most *list.List) {
	for _, in := range p.groups {
		if most == nil || in.Len() > most.Len() {
			most = in
		}
	}
	return most
}
