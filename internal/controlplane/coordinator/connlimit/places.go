package connlimit

import (
	"container/list"
	"math"
)

// The room at the fleet's port follows from the bytes that the heap may take.
const (
	// podBytes is what a pod that enforces one limit takes with its connection and its session,
	// 45 KiB by BenchmarkStreams of the coordinator, and garbage: with less room for
	// that, the runtime collects all the time.
	podBytes = 64 << 10
	// limitBytes is what each limit more takes: 1.1 KiB by `make scale` with a hundred, and more
	// while all connect.
	limitBytes = 2 << 10
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

// Weight returns how many KiB of the heap a pod takes that enforces a number of limits.
func Weight(limits int) int { return (podBytes + max(0, limits-1)*limitBytes) >> 10 }

// ConnectionsIn returns for how many connections without a stream that is authenticated there
// is room in a heap of that many bytes.
func ConnectionsIn(heap int64) int { return max(2, int(bytesOf(heap)/pendingPart/pendingBytes)) }

func bytesOf(heap int64) int64 {
	if heap == math.MaxInt64 {
		return usualHeap
	}
	return heap
}

// Places are a bounded room that members of groups share, each by its weight. When all is taken, the
// group that has the most gives up one of its members for a group that has less ("longest queue drop";
// Suter, Lakshman, Stiliadis and Choudhury, IEEE INFOCOM 1998). So one group alone may take all,
// and keeps no other from its fair share. It is not safe for concurrent use.
type Places[G comparable, M any] struct {
	Most   int // weight of all groups together
	each   int // of one group
	gives  func(*list.List) *list.Element
	Taken  int
	groups map[G]*group
}

// group are the places of one, in the order in which they were taken.
type group struct {
	list.List
	weight int
}

// A Place is that of a member.
type Place[G comparable, M any] struct {
	group  G
	weight int
	Member M
	at     *list.Element // nil once it is free
}

// IsFree reports whether the place was given back or given up.
func (p *Place[G, M]) IsFree() bool { return p.at == nil }

// NewPlaces returns places. A group gives up the one of its own that gives picks: the oldest
// (Front) or the newest (Back).
func NewPlaces[G comparable, M any](most, each int, gives func(*list.List) *list.Element) *Places[G, M] {
	return &Places[G, M]{Most: most, each: each, gives: gives, groups: map[G]*group{}}
}

// Take returns a place of that weight for a member of a group, or nil where the group may have no
// more. Those in givenUp were given up for it, and are free.
func (p *Places[G, M]) Take(of G, member M, weight int) (got *Place[G, M], givenUp []*Place[G, M]) {
	givenUp, ok := p.clear(of, weight)
	if !ok {
		return nil, givenUp
	}
	in := p.groups[of]
	if in == nil {
		in = &group{}
		p.groups[of] = in
	}
	got = &Place[G, M]{group: of, Member: member}
	got.at = in.PushBack(got)
	p.weigh(got, weight)
	return got, givenUp
}

// Weigh changes the weight of a place that is taken, and reports false where the group may have no
// more, or the place is free: then it is as it was. Those in givenUp were given up for it, and are free.
func (p *Places[G, M]) Weigh(place *Place[G, M], weight int) (givenUp []*Place[G, M], ok bool) {
	if place.at == nil {
		return nil, false
	}
	if givenUp, ok = p.clear(place.group, weight-place.weight); ok {
		p.weigh(place, weight)
	}
	return givenUp, ok
}

func (p *Places[G, M]) weigh(place *Place[G, M], weight int) {
	p.Taken += weight - place.weight
	p.groups[place.group].weight += weight - place.weight
	place.weight = weight
}

// clear has other groups give up places until there is room for more weight of a group. It
// reports false when the group may have no more.
func (p *Places[G, M]) clear(of G, more int) (givenUp []*Place[G, M], ok bool) {
	if more <= 0 {
		return nil, true
	}
	own := p.Of(of) + more
	if own > p.each {
		return nil, false
	}
	for p.Taken+more > p.Most {
		largest := p.largest()
		if largest == nil {
			return givenUp, false
		}
		next := p.gives(&largest.List).Value.(*Place[G, M]) //nolint:forcetypeassert // nothing else is in it
		if largest.weight-next.weight < own {               // it would have less than the other then
			return givenUp, false
		}
		p.Free(next)
		givenUp = append(givenUp, next)
	}
	return givenUp, true
}

// Free gives a place back, once.
func (p *Places[G, M]) Free(old *Place[G, M]) {
	if old == nil || old.at == nil {
		return
	}
	p.weigh(old, 0)
	in := p.groups[old.group]
	in.Remove(old.at)
	old.at = nil
	if in.Len() == 0 {
		delete(p.groups, old.group)
	}
}

// Of returns the weight of the places of a group.
func (p *Places[G, M]) Of(of G) int {
	if in := p.groups[of]; in != nil {
		return in.weight
	}
	return 0
}

// largest returns the group with the most weight, nil for none.
func (p *Places[G, M]) largest() (most *group) {
	for _, in := range p.groups {
		if most == nil || in.weight > most.weight {
			most = in
		}
	}
	return most
}
