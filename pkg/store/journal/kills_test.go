package journal

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestManyKillsForfeitLittle kills the leader 200 times under a day's quota, which is asked
// for at different paces, and prints what was forfeited.
func TestManyKillsForfeitLittle(t *testing.T) {
	const kills = 200
	for name, c := range map[string]struct {
		limit, perSecond int64
		apart            limiter.Micros // between kills
		most             int64          // forfeited, of 1000
	}{
		"a day's traffic at its pace":     {86_400, 1, 7 * 60 * limiter.Second, 65},
		"ten times that":                  {86_400, 10, 7 * 60 * limiter.Second, 65},
		"a million, as fast as it can":    {1_000_000, 2_000, 10 * limiter.Second, 65},
		"a thousand, a few times an hour": {1_000, 0, 7 * 60 * limiter.Second, 150},
	} {
		t.Run(name, func(t *testing.T) {
			p := daily(c.limit)
			var record Record
			var granted, writes int64
			now := start - start%limiter.Instant(limiter.Day)
			for range kills + 1 {
				d := opened(t, p, record, now)
				record = d.Write(now)
				d.Acknowledge(record.Seq)
				pace := Pace{}
				for end := now.Add(c.apart); now < end; now = now.Add(limiter.Second / 4) {
					d.now = now
					ask := c.perSecond / 4
					if c.perSecond < 4 && int64(now)%int64(4*limiter.Second) < c.perSecond*int64(limiter.Second) {
						ask = 1
					}
					if c.perSecond == 0 && now == end.Add(-60*limiter.Second) {
						ask = 4
					}
					for ask > 0 {
						n := d.take("a", ask)
						granted, ask = granted+n, ask-n
						due, urgent := d.Due()
						if due && now >= pace.Next(urgent) {
							record, pace = d.commit(), pace.Wrote(now, d.Bytes())
							writes++
						} else if n == 0 {
							break
						}
					}
				}
			}
			d := opened(t, p, record, now)
			used := d.State(Key{limit, "a"}, p).Meters[0].Used
			lost := used - granted
			t.Logf("granted %d, forfeited %d of %d (%d.%d %%), %d writes", granted, lost, c.limit, 100*lost/c.limit, 1000*lost/c.limit%10, writes)
			switch {
			case granted > c.limit:
				t.Errorf("granted %d of %d", granted, c.limit)
			case lost*1000 > c.most*c.limit:
				t.Errorf("forfeited %d of %d", lost, c.limit)
			case granted < min(c.limit-lost, 500):
				t.Errorf("only %d were granted", granted)
			}
		})
	}
}
