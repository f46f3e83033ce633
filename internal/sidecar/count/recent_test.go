package count

import (
	"math"
	"testing"
	"time"
)

// minutes is an instant, in minutes from the first.
func minutes(n float64) time.Time { return at(n * 60) }

func TestRatesOfTheLastMinutes(t *testing.T) {
	const steps = 60 // a minute
	for name, tt := range map[string]struct {
		begun, from float64                      // when counting began and when rates are first asked for, in minutes
		counts      func(minute float64) float64 // so far
		asked       float64
		want        float64
	}{
		"a steady rate":                       {0, 0, func(m float64) float64 { return 60 * m }, 30, 60},
		"in the first minute":                 {0, 0, func(m float64) float64 { return 60 * m }, 0.5, 30},
		"after the first minutes":             {0, 0, func(m float64) float64 { return 60 * m }, 2, 60},
		"nothing for a half-life":             {0, 0, func(m float64) float64 { return 60 * min(m, 100) }, 105, 30},
		"nothing for an hour":                 {0, 0, func(m float64) float64 { return 60 * min(m, 100) }, 160, 60.0 / 4096},
		"first asked for late":                {0, 100, func(m float64) float64 { return 60 * m }, 100, 60},
		"first asked for late, and since":     {0, 100, func(m float64) float64 { return 60 * m }, 110, 60},
		"asked for at once":                   {0, 0, func(float64) float64 { return 7 }, 0, 7},
		"twice as much for one half-life":     {0, 0, func(m float64) float64 { return 60*m + 60*max(0, m-100) }, 105, 90},
		"counts that become less add nothing": {0, 0, func(m float64) float64 { return 60 * max(m, 100-m) }, 0.1, 6000},
	} {
		t.Run(name, func(t *testing.T) {
			var r recent
			var got rate
			for i := int(tt.from * steps); i <= int(tt.asked*steps); i++ {
				m := float64(i) / steps
				n := int64(tt.counts(m))
				keys := []hotKey{{value: "a", admitted: n, refused: 2 * n}}
				r.rate(keys, minutes(tt.begun), minutes(m))
				got = keys[0].lately
			}
			if math.Abs(got.admitted-tt.want) > 0.04*tt.want+0.01 || math.Abs(got.refused-2*got.admitted) > 0.05*got.admitted {
				t.Errorf("admitted %.2f and refused %.2f a minute, want %.2f and twice as much", got.admitted, got.refused, tt.want)
			}
		})
	}
}

// TestTheHottestKeysOfTheLastMinutesComeFirst: a key that was asked for most yesterday is not
// the first one today.
func TestTheHottestKeysOfTheLastMinutesComeFirst(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	count := func(value string, units, from int64) {
		for i := range int64(60) {
			l.Count(at(float64(from+i)), admitted(value, units, second(from+i)))
		}
		hottest(t, b, float64(from+60))
	}
	count("yesterday", 1000, 0)
	count("today", 10, 86_400)
	got := hottest(t, b, 86_460)
	if len(got) != 2 || got[0].GetHash() != "#today" || got[0].GetAdmittedPerMinute() < 50 || got[1].GetAdmittedPerMinute() > 1 || got[1].GetAdmitted() != 60_000 {
		t.Errorf("the hottest keys are %v", got)
	}
}
