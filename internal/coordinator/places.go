package coordinator

import (
	"container/list"
	"math"
)

// The room at the fleet's port follows from the bytes that the heap may take.
const (
	// podBytes is what a pod takes with its connection and its session: half of the resident
	// memory that docs/capacity.md shows for one. The other half is garbage, which the
	// runtime collects earlier where memory is scarce.
	podBytes = 64 << 10
	// strangerBytes is what a connection takes that shook hands and sends nothing.
	strangerBytes = 40 << 10
	// strangersPart is which part of the heap is for connections without a stream that is
	// authenticated.
	strangersPart = 8
	// usualHeap is that in the container of 512Mi that the chart makes. It counts where the
	// heap has no limit.
	usualHeap = 512 << 20 / 5 * 4
)

// podsIn returns for how many pods there is room in a heap of that many bytes.
func podsIn(heap int64) int { return max(1, int(roomOf(heap)/podBytes)) }

// strangersIn returns for how many connections without a stream that is authenticated there
// is room in a heap of that many bytes.
func strangersIn(heap int64) int { return max(2, int(roomOf(heap)/strangersPart/strangerBytes)) }

func roomOf(heap int64) int64 {
	if heap == math.MaxInt64 {
		return usualHeap
	}
	return heap
}

// places are a bounded number that members of groups share. When all are taken, the group
// that has the most gives one up for a group that has fewer ("longest queue drop"; Suter,
// Lakshman, Stiliadis and Choudhury, IEEE INFOCOM 1998). So one group alone may take all,
// and keeps no other from its fair share. It is not safe for concurrent use.
type places[G comparable, M any] struct {
	most   int // of all groups together
	each   int // of one group
	gives  func(*list.List) *list.Element
	taken  int
	groups map[G]*list.List // of places, in the order in which they were taken
}

// A place is that of a member.
type place[G comparable, M any] struct {
	group  G
	member M
	at     *list.Element // nil once it is free
}

// newPlaces returns places. A group gives up the one of its own that gives picks: the oldest
// (Front) or the newest (Back).
func newPlaces[G comparable, M any](most, each int, gives func(*list.List) *list.Element) *places[G, M] {
	return &places[G, M]{most: most, each: each, gives: gives, groups: map[G]*list.List{}}
}

// take returns a place for a member of a group, or nil where the group may have no more. If
// givenUp is not nil, it was given up for that place, and is free.
func (p *places[G, M]) take(group G, member M) (got, givenUp *place[G, M]) {
	own := p.of(group)
	if own >= p.each {
		return nil, nil
	}
	if p.taken >= p.most {
		largest := p.largest()
		if largest == nil || largest.Len() < own+2 { // it would have fewer than the other then
			return nil, nil
		}
		givenUp = p.gives(largest).Value.(*place[G, M]) //nolint:forcetypeassert // nothing else is in it
		p.free(givenUp)
	}
	in := p.groups[group]
	if in == nil {
		in = list.New()
		p.groups[group] = in
	}
	p.taken++
	got = &place[G, M]{group: group, member: member}
	got.at = in.PushBack(got)
	return got, givenUp
}

// free gives a place back, once.
func (p *places[G, M]) free(old *place[G, M]) {
	if old == nil || old.at == nil {
		return
	}
	in := p.groups[old.group]
	in.Remove(old.at)
	old.at = nil
	p.taken--
	if in.Len() == 0 {
		delete(p.groups, old.group)
	}
}

// of returns how many places a group has.
func (p *places[G, M]) of(group G) int {
	if in := p.groups[group]; in != nil {
		return in.Len()
	}
	return 0
}

// largest returns the group with the most places, nil for none.
func (p *places[G, M]) largest() (most *list.List) {
	for _, in := range p.groups {
		if most == nil || in.Len() > most.Len() {
			most = in
		}
	}
	return most
}
