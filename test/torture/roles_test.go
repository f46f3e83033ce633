package main

import (
	"testing"
	"time"
)

func spans(bounds ...float64) (all []span) {
	for i := 0; i < len(bounds); i += 2 {
		all = append(all, span{at(bounds[i]), at(bounds[i+1])})
	}
	return all
}

func TestTwoPrimariesAtATime(t *testing.T) {
	const from, until = 10, 15
	for name, c := range map[string]struct {
		first, second, deaf []span // deaf: of the first
		split               bool
	}{
		"one":                                  {spans(0, 100), nil, nil, false},
		"one after the other":                  {spans(0, 11), spans(12, 100), nil, false},
		"both":                                 {spans(0, 12), spans(11, 100), nil, true},
		"both before that":                     {spans(0, 9), spans(8, 100), nil, false},
		"both after that":                      {spans(0, 19), spans(18, 100), nil, false},
		"one that stands still meanwhile":      {spans(0, 13), spans(11, 100), spans(10.5, 13.5), false},
		"one that goes on":                     {spans(0, 13), spans(11, 100), spans(10.5, 12.5), true},
		"one that stood still until it was on": {spans(0, 13), spans(11, 100), spans(11.5, 14), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := group{pairs: [][2]*member{{{serves: c.first, deaf: c.deaf}, {serves: c.second}}}}
			if got := g.splitIn(at(from), at(until)); got != c.split {
				t.Errorf("split: %t, want %t", got, c.split)
			}
		})
	}
}

func TestAServerThatIsOnceAPrimary(t *testing.T) {
	var m member
	m.note(span{at(1), at(2)})
	m.note(span{at(2), at(3)})
	rises := m.falls()
	rises()
	m.note(span{at(7), at(9)})
	if got := m.served(); len(got) != 2 || got[0] != (span{at(1), at(3)}) || got[1] != (span{at(7), at(9)}) {
		t.Errorf("served: %v", got)
	}
	m.deaf = []span{{at(2), at(8)}}
	if got := m.served(); len(got) != 2 || got[0].until.Sub(at(2)) != 0 || got[1].from.Sub(at(8)) != time.Duration(0) {
		t.Errorf("without what it was away for: %v", got)
	}
}
