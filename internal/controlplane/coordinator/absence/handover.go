package absence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// maxReturns bounds what is handed over of absent holders, in bytes. For a policy that
	// does not fit, nobody counts as back.
	maxReturns = 128 << 10
	// maxAbsences is how many are handed over of one policy; earlier ones become one.
	maxAbsences = 4
	// maxSteps is the number of steps in which, as handed over, holders come back, none
	// earlier than it did, and promises are over, none later than it was.
	maxSteps = 16
)

// An Inheritance is what earlier terms knew of absent holders, where windows that began then
// may be open. A policy that it does not name was not enforced by anybody it knew.
type Inheritance struct {
	Others   []absence            `json:"others"`
	Policies map[string][]absence `json:"policies"` // by namespace/name
}

// An absence is a limiter.Absence in short.
type absence struct {
	From  limiter.Instant `json:"from"`
	Until limiter.Instant `json:"until"`
	Whole limiter.Instant `json:"whole,omitempty"`
	Back  []shares        `json:"back,omitempty"`
	Lapse []shares        `json:"lapse,omitempty"`
	Again []shares        `json:"again,omitempty"`
}

// shares are limiter.Shares: how many were back at each instant.
type shares struct {
	Of    int64             `json:"of"`
	At    []limiter.Instant `json:"at"`
	Count []int             `json:"count"`
}

// of returns the absences of holders of the policy; i may be nil.
func (i *Inheritance) of(name types.NamespacedName) []limiter.Absence {
	if i == nil {
		return nil
	}
	list, ok := i.Policies[name.String()]
	if !ok {
		list = i.Others
	}
	out := make([]limiter.Absence, len(list))
	for i, a := range list {
		out[i] = limiter.Absence{
			From: a.From, Until: a.Until, Whole: a.Whole, Back: atLength(a.Back), Lapse: atLength(a.Lapse), Again: atLength(a.Again),
		}
	}
	return out
}

func atLength(short []shares) (out []limiter.Shares) {
	for _, s := range short {
		all := limiter.Shares{Of: s.Of}
		for j, at := range s.At {
			all.At = append(all.At, slices.Repeat([]limiter.Instant{at}, s.Count[j])...)
		}
		out = append(out, all)
	}
	return out
}

// Decode reads what Export wrote.
func Decode(data []byte) (*Inheritance, error) {
	out := new(Inheritance)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}
	for _, list := range append(slices.Collect(maps.Values(out.Policies)), out.Others) {
		for _, a := range list {
			for _, s := range slices.Concat(a.Back, a.Lapse, a.Again) {
				if s.Of < 1 || len(s.At) != len(s.Count) || !slices.IsSorted(s.At) || slices.ContainsFunc(s.Count, func(n int) bool { return n < 1 || n > 1<<20 }) {
					return nil, fmt.Errorf("shares of %d are back at %d instants, %d of them counted", s.Of, len(s.At), len(s.Count))
				}
			}
		}
	}
	return out, nil
}

// Export returns what the next term has to know of absent holders, when this one served
// nothing after the instant.
func (r *Tracker) Export(stopped limiter.Instant) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lapse(stopped)
	out := Inheritance{Policies: map[string][]absence{}}
	if !r.first {
		out.Others = handedOn(append(r.before.others(), limiter.Absence{From: r.from, Until: stopped}), stopped, limiter.MaxWindow)
	}
	for name, c := range r.policies {
		out.Policies[name.String()] = handedOn(c.known, stopped, cmp.Or(c.span, limiter.MaxWindow))
	}
	data, err := json.Marshal(out)
	if err == nil && len(data) > maxReturns {
		out.Policies = nil
		data, err = json.Marshal(out)
	}
	return data, err
}

// others are the absences of holders of the policies that are not named.
func (i *Inheritance) others() []limiter.Absence { return i.of(types.NamespacedName{}) }

// handedOn returns what is handed on of absences that end when the term does.
func handedOn(all []limiter.Absence, stopped limiter.Instant, span limiter.Micros) []absence {
	out := []absence{}
	for _, a := range all {
		a.Until = min(a.Until, stopped)
		if a.Until.Add(span) < stopped {
			continue // no window that began then is open
		}
		last := func(part []limiter.Instant) limiter.Instant { return part[len(part)-1] }
		first := func(part []limiter.Instant) limiter.Instant { return part[0] }
		out = append(out, absence{
			From: a.From, Until: a.Until, Whole: a.Whole, Back: inSteps(a.Back, last), Lapse: inSteps(a.Lapse, first), Again: inSteps(a.Again, last),
		})
	}
	for len(out) > maxAbsences {
		out[1] = absence{From: out[0].From, Until: out[1].Until}
		out = out[1:]
	}
	return out
}

// inSteps has holders come in a few steps, each of them when one of several does.
func inSteps(all []limiter.Shares, one func([]limiter.Instant) limiter.Instant) (out []shares) {
	for _, s := range all {
		short, size := shares{Of: s.Of}, (len(s.At)+maxSteps-1)/maxSteps
		for part := range slices.Chunk(s.At, max(1, size)) {
			short.At, short.Count = append(short.At, one(part)), append(short.Count, len(part))
		}
		out = append(out, short)
	}
	return out
}
