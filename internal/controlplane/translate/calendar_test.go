package translate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestCalendars holds the windows of each cadence against the calendar of package
// time, on clocks east and west of Greenwich.
func TestCalendars(t *testing.T) {
	periods := map[string]func(time.Time) (start, end time.Time){
		"Hour": func(at time.Time) (time.Time, time.Time) {
			start := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), 0, 0, 0, at.Location())
			return start, start.Add(time.Hour)
		},
		"Day": func(at time.Time) (time.Time, time.Time) {
			start := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())
			return start, start.AddDate(0, 0, 1)
		},
		"Week": func(at time.Time) (time.Time, time.Time) {
			sinceMonday := (int(at.Weekday()) + 6) % 7
			start := time.Date(at.Year(), at.Month(), at.Day()-sinceMonday, 0, 0, 0, 0, at.Location())
			return start, start.AddDate(0, 0, 7)
		},
		"Month": func(at time.Time) (time.Time, time.Time) {
			start := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, at.Location())
			return start, start.AddDate(0, 1, 0)
		},
	}
	clocks := map[string]time.Duration{"+00:00": 0, "+05:45": 345 * time.Minute, "-03:30": -210 * time.Minute, "+14:00": 14 * time.Hour, "-14:00": -14 * time.Hour}
	for cadence, period := range periods {
		for offset, east := range clocks {
			t.Run(cadence+offset, func(t *testing.T) {
				rate := rateOf(t, cadence, offset)
				zone := time.FixedZone(offset, int(east/time.Second))
				random := rand.New(rand.NewPCG(1, 2))
				for range 500 {
					at := time.UnixMicro(random.Int64N(4e15)).In(zone)
					start, end := period(at)
					window := rate.WindowAt(limiter.Instant(at.UnixMicro()))
					if int64(window.Start()) != start.UnixMicro() || int64(window.End()) != end.UnixMicro() {
						t.Fatalf("at %v the window is %v to %v, want %v to %v", at, time.UnixMicro(int64(window.Start())).In(zone),
							time.UnixMicro(int64(window.End())).In(zone), start, end)
					}
				}
			})
		}
	}
}

// rateOf translates a quota with one cadence.
func rateOf(t *testing.T, cadence, offset string) limiter.Rate {
	t.Helper()
	spec := fmt.Sprintf(`{podSelector: {}, limits: [{name: all, algorithm: Quota, utcOffset: %q, rates: [{limit: 1, cadence: %s}]}]}`, offset, cadence)
	p, err := translate.Policy(defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+spec+`}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Limits[0].Rates[0]
}
