package replay

import (
	"cmp"
	"slices"
	"time"
)

// An outcome is what becomes of a request at a limit.
type outcome uint8

const (
	admitted    outcome = iota
	refusedHere         // or would be, in Shadow
	rejected            // a part of the key is missing
	skipped             // the same, and the limit does not apply then
	outvoted            // another limit decided: refused the request, or admitted it in place of this one
)

// A Result is what a limit would have done.
type Result struct {
	Policy   string  `json:"policy"`
	Limit    string  `json:"limit"`
	Shadow   bool    `json:"shadow,omitempty"` // it refuses nothing yet
	Matched  int64   `json:"matched"`          // requests that it applies to
	Admitted int64   `json:"admitted"`         // requests that it and all others admit
	Refused  int64   `json:"refused"`          // requests that it refuses; in Shadow, would refuse
	Percent  float64 `json:"refusedPercent"`   // refused requests of those that it applies to
	Missing  int64   `json:"missing"`          // requests that lack a part of its key
	// WorstMinute is the one with the most refusals, nil without any.
	WorstMinute *Minute `json:"worstMinute,omitempty"`
	// Top are the values with the most refusals.
	Top []Refused `json:"topRefused,omitempty"`
}

// A Minute is what one refused.
type Minute struct {
	Start   time.Time `json:"start"`
	Refused int64     `json:"refused"`
}

// Refused is how many requests of one value of the key are refused.
type Refused struct {
	Value   string `json:"value"`
	Refused int64  `json:"refused"`
}

// A tally counts what becomes of the requests of a limit.
type tally struct {
	Matched, Admitted, Refused, Missing int64

	minute, worst Minute
	refused       map[string]int64 // by the value of the key
}

func (t *tally) add(is outcome, value string, at time.Time) {
	t.Matched++
	switch is {
	case admitted:
		t.Admitted++
	case skipped:
		t.Missing++
	case rejected:
		t.Missing++
		t.refuse("(missing)", at)
	case refusedHere:
		t.refuse(value, at)
	case outvoted:
	}
}

func (t *tally) refuse(value string, at time.Time) {
	t.Refused++
	if t.refused == nil {
		t.refused = map[string]int64{}
	}
	t.refused[value]++
	if start := at.Truncate(time.Minute); !start.Equal(t.minute.Start) {
		t.minute = Minute{Start: start}
	}
	if t.minute.Refused++; t.minute.Refused > t.worst.Refused {
		t.worst = t.minute
	}
}

// Late returns how many requests were older than one before them.
func (s *Simulation) Late() int64 { return s.late }

// Results returns what each limit would have done, in the order of the policies, with at most
// that many values.
func (s *Simulation) Results(top int) []Result {
	results := []Result{}
	for _, l := range s.limits {
		t := &l.tally
		r := Result{
			Policy: l.Policy.Name, Limit: l.Limit.Name, Shadow: l.shadow,
			Matched: t.Matched, Admitted: t.Admitted, Refused: t.Refused, Missing: t.Missing,
		}
		if t.Matched > 0 {
			r.Percent = float64(t.Refused*1000/t.Matched) / 10
		}
		if t.Refused > 0 {
			r.WorstMinute = &t.worst
		}
		for value, n := range t.refused {
			if value != "" {
				r.Top = append(r.Top, Refused{Value: value, Refused: n})
			}
		}
		slices.SortFunc(r.Top, func(a, b Refused) int {
			return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Value, b.Value))
		})
		r.Top = r.Top[:min(len(r.Top), top)]
		results = append(results, r)
	}
	return results
}
