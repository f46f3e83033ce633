package adaptive_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A drive takes a limit that may measure every second, allowing four, three samples
// long.
type drive struct {
	t   *testing.T
	law *adaptive.Limit
}

func measured() adaptive.Config {
	return adaptive.Config{
		Min: 1, Max: 100, Initial: 40, Smoothing: 0.2, Tolerance: 2,
		Baseline: adaptive.Baseline{Type: adaptive.Measured, Interval: limiter.Second, ProbeLimit: 4, ProbeSamples: 3},
	}
}

func (d drive) ceiling(at limiter.Micros, want int64) {
	d.t.Helper()
	if got := d.law.Ceiling(limiter.Instant(at)); got != want {
		d.t.Errorf("at %dms the ceiling is %d, want %d", at/ms, got, want)
	}
}

// sample ends a request at the instant that did not fill the limit.
func (d drive) sample(at, rtt limiter.Micros) {
	d.law.Sample(limiter.Instant(at), rtt, idle, false)
}

func (d drive) drop(at limiter.Micros) {
	d.law.Sample(limiter.Instant(at), ms, idle, true)
}

// window ends at the instant whole windows and rounds of requests that did not fill the
// limit.
func (d drive) window(at, rtt limiter.Micros) {
	const samples = 320
	for i := range limiter.Micros(samples) {
		d.sample(at-(samples-1-i)*rtt/30, rtt)
	}
}

// measure ends a measurement.
func (d drive) measure(at, rtt limiter.Micros) {
	for range 3 {
		d.sample(at, rtt)
	}
}

// press has a round of requests fill the limit that took 30 ms each, up to the instant.
func (d drive) press(at limiter.Micros) {
	for i := range limiter.Micros(10) {
		d.law.Sample(limiter.Instant(at-(9-i)*8*ms), 30*ms, adaptive.Use{InFlight: 40, Ceiling: 40}, false)
	}
}

func (d drive) baseline(want limiter.Micros) {
	d.t.Helper()
	if got := d.law.Baseline(); got != want {
		d.t.Errorf("baseline is %dms, want %dms", got/ms, want/ms)
	}
}

// TestMeasurements follows what happens at the multiples of the interval. All begin with
// a baseline of 10 ms that was never measured, a latency of 30 ms that filled the limit,
// and the limit of 38 that followed from that.
func TestMeasurements(t *testing.T) {
	for name, story := range map[string]func(drive){
		"the load is held down until there are samples enough": func(d drive) {
			d.ceiling(999*ms, 38)
			d.ceiling(1000*ms, 4)
			d.sample(1060*ms, 30*ms)
			d.sample(1070*ms, 25*ms)
			d.ceiling(1070*ms, 4)
			d.baseline(10 * ms)
			d.sample(1080*ms, 35*ms)
			d.ceiling(1080*ms, 38)
			d.baseline(30 * ms)
		},
		"a request that was forwarded before the rest drained says nothing": func(d drive) {
			d.ceiling(1000*ms, 4)
			for range 9 {
				d.sample(1059*ms, 30*ms)
			}
			d.ceiling(1060*ms, 4)
		},
		"drops say nothing": func(d drive) {
			d.ceiling(1000*ms, 4)
			for range 9 {
				d.drop(1060 * ms)
			}
			d.ceiling(1060*ms, 4)
			if d.law.Learned() != 1 {
				d.t.Error("a measurement is not a time to learn")
			}
		},
		"a measurement that takes too long adopts what it has": func(d drive) {
			d.ceiling(1000*ms, 4)
			d.sample(1070*ms, 30*ms)
			d.ceiling(1119*ms, 4)
			d.ceiling(1120*ms, 38)
			d.baseline(30 * ms)
		},
		"a measurement without a sample changes nothing": func(d drive) {
			d.ceiling(1000*ms, 4)
			d.ceiling(1120*ms, 38)
			d.baseline(10 * ms)
		},
		"a slow backend has half of the interval": func(d drive) {
			d.sample(990*ms, 900*ms)
			d.ceiling(1000*ms, 4)
			d.ceiling(1499*ms, 4)
			d.ceiling(1500*ms, 38)
		},
		"who comes late leaves it out": func(d drive) {
			d.ceiling(1120*ms, 38)
			d.ceiling(1500*ms, 38)
			d.press(1900 * ms)
			d.ceiling(2000*ms, 4)
		},
		"who comes an interval late joins in where it should": func(d drive) {
			d.ceiling(5050*ms, 4)
			d.ceiling(5120*ms, 38)
		},
		"samples begin one, too": func(d drive) {
			d.sample(1000*ms, 5*ms)
			d.ceiling(1000*ms, 4)
			d.baseline(10 * ms)
		},
		"a limit that is not in use is not measured for": func(d drive) {
			d.ceiling(1120*ms, 38)
			d.window(1500*ms, 30*ms)
			d.ceiling(2000*ms, 38)
		},
		"a fleet holds its load down as a whole": func(d drive) {
			d.law.Adopt(40, 2)
			d.ceiling(1000*ms, 2)
			d.law.Adopt(40, 100)
			d.ceiling(1000*ms, 1)
		},
		"a limit below what a measurement allows stays": func(d drive) {
			d.law.Adopt(3, 1)
			d.ceiling(1000*ms, 3)
		},
		"without a probe limit half of what leaves no queue is allowed": func(d drive) {
			c := measured()
			c.Baseline.ProbeLimit = 0
			d.law.Reconfigure(c)
			d.law.Adopt(40, 2)
			d.ceiling(100*ms, 40)
			d.press(300 * ms)
			d.ceiling(1000*ms, 5) // 40/(2·2) over two
		},
		"another configuration ends it": func(d drive) {
			d.ceiling(1000*ms, 4)
			d.sample(1070*ms, 30*ms)
			d.law.Reconfigure(measured())
			d.ceiling(1071*ms, 38)
			d.baseline(10 * ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive{t, adaptive.New(measured())}
			d.ceiling(100*ms, 40)
			d.window(210*ms, 10*ms)
			d.press(300 * ms)
			story(d)
		})
	}
}

// TestMeasuredWhenInDoubt follows what happens after a measurement of 10 ms at 1 s, with
// a limit that is in use all the time.
func TestMeasuredWhenInDoubt(t *testing.T) {
	const s = limiter.Second
	for name, story := range map[string]func(drive) bool{
		"samples show it": func(d drive) bool {
			d.window(1900*ms, 12*ms)
			d.law.Adopt(10, 1)
			return false
		},
		"none showed it for half an interval, and the limit fell": func(d drive) bool {
			d.window(1900*ms, 30*ms)
			d.law.Adopt(10, 1)
			return true
		},
		"none showed it for half an interval, and the limit rose": func(d drive) bool {
			d.window(1900*ms, 30*ms)
			d.law.Adopt(90, 1)
			return true
		},
		"none showed it for less": func(d drive) bool {
			d.window(1550*ms, 12*ms)
			d.window(1900*ms, 30*ms)
			d.law.Adopt(10, 1)
			return false
		},
		"none showed it while the limit rested": func(d drive) bool {
			d.window(1900*ms, 30*ms)
			return false
		},
		"it fell by much": func(d drive) bool {
			d.window(1900*ms, 1*ms)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive{t, adaptive.New(measured())}
			d.ceiling(100*ms, 40)
			d.window(210*ms, 10*ms)
			d.press(300 * ms)
			d.ceiling(s, 4)
			d.measure(1050*ms, 10*ms)
			d.law.Adopt(38, 1)
			d.press(1400 * ms)
			doubt := story(d)
			d.press(1990 * ms)
			if got := d.law.Ceiling(limiter.Instant(2*s)) < d.law.Limit(); got != doubt {
				t.Errorf("measures is %v, want %v", got, doubt)
			}
		})
	}
}

// TestAMeasurementHoldsForSixIntervals has load last that nothing changes.
func TestAMeasurementHoldsForSixIntervals(t *testing.T) {
	d := drive{t, adaptive.New(measured())}
	d.ceiling(100*ms, 40)
	d.window(210*ms, 10*ms)
	d.press(300 * ms)
	d.ceiling(1000*ms, 4)
	d.measure(1050*ms, 10*ms)
	for at := 2 * limiter.Second; ; at += limiter.Second {
		d.law.Adopt(38, 1)
		d.window(at-200*ms, 30*ms)
		d.press(at - 10*ms)
		if d.law.Ceiling(limiter.Instant(at)) < d.law.Limit() {
			if at != 5*limiter.Second { // three intervals without a sample that shows it
				t.Errorf("measured at %ds", at/limiter.Second)
			}
			return
		}
	}
}

// TestNothingIsMeasuredBeforeARequest keeps a fresh holder from starting slowly.
func TestNothingIsMeasuredBeforeARequest(t *testing.T) {
	d := drive{t, adaptive.New(measured())}
	d.ceiling(500*ms, 40)
	d.ceiling(1000*ms, 40)
	d.ceiling(2000*ms, 40)
}

// TestTheLimitWaitsForAMeasurement lets latency take it to half until the baseline is
// measured. Dropped requests take it further.
func TestTheLimitWaitsForAMeasurement(t *testing.T) {
	c := measured()
	c.Baseline.Interval = 100 * limiter.Second
	d := drive{t, adaptive.New(c)}
	d.ceiling(100*ms, 40)
	d.window(210*ms, 10*ms)
	load := func(from limiter.Micros, dropped bool) {
		for i := range limiter.Micros(500) {
			d.law.Sample(limiter.Instant(from+i*20*ms), 100*ms, adaptive.Use{InFlight: 40, Ceiling: 40}, dropped)
		}
	}
	load(limiter.Second, false)
	d.ceiling(30*limiter.Second, 20)
	load(31*limiter.Second, true)
	d.ceiling(60*limiter.Second, 4)
}

// TestSlowStartComesBack fills the limit without a queue: after three such rounds there
// is not a sign of load any more.
func TestSlowStartComesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds []limiter.Micros // latency of each
		want   int64
	}{
		"two rounds":                   {[]limiter.Micros{10 * ms, 10 * ms}, 41},
		"three rounds":                 {[]limiter.Micros{10 * ms, 10 * ms, 10 * ms}, 61},
		"a queue in one":               {[]limiter.Micros{10 * ms, 15 * ms, 10 * ms}, 42},
		"a backend that became faster": {[]limiter.Micros{5 * ms, 5 * ms, 5 * ms}, 42},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive{t, adaptive.New(measured())}
			d.ceiling(100*ms, 40)
			d.window(210*ms, 10*ms)
			d.press(300 * ms)
			d.ceiling(1000*ms, 4)
			d.measure(1050*ms, 10*ms)
			now := limiter.Instant(1100 * ms)
			for _, rtt := range tc.rounds {
				now = show(d.law, now, feed{rtt, adaptive.Use{InFlight: 40, Ceiling: 40}, false})
			}
			if got := d.law.Limit(); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
}
