package concurrency

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestShareFollowsTheLatestAnswerOnly(t *testing.T) {
	const sent = int64(10 * time.Second)
	have := share{known: true, live: true, term: 3, generation: 7, units: 4, seq: 20, expires: sent}
	grant := func(change func(*pool.Grant)) pool.Grant {
		g := pool.Grant{Seq: 21, Term: 3, Generation: 8, Share: 6, TTL: 2 * limiter.Second}
		change(&g)
		return g
	}
	for name, tc := range map[string]struct {
		seq   int64 // of the beat that was answered
		grant pool.Grant
		dead  bool
		took  bool
		fails bool
		units int64
	}{
		"a later beat":                              {21, grant(func(*pool.Grant) {}), false, true, false, 6},
		"the same share again":                      {21, grant(func(g *pool.Grant) { g.Generation, g.Share = 7, 4 }), false, true, false, 4},
		"the first of a later term":                 {21, grant(func(g *pool.Grant) { g.Term, g.Generation = 4, 1 }), false, true, false, 6},
		"the beat in force":                         {20, grant(func(g *pool.Grant) { g.Seq = 20 }), false, false, false, 4},
		"an earlier beat":                           {19, grant(func(g *pool.Grant) { g.Seq = 19 }), false, false, false, 4},
		"an earlier beat, after a later one":        {21, grant(func(g *pool.Grant) { g.Seq = 22 }), false, false, false, 4},
		"with what an earlier beat got":             {22, grant(func(*pool.Grant) {}), false, false, true, 4},
		"an earlier term":                           {21, grant(func(g *pool.Grant) { g.Term, g.Generation = 2, 9 }), false, false, true, 4},
		"an earlier generation of the term":         {21, grant(func(g *pool.Grant) { g.Generation = 6 }), false, false, true, 4},
		"a smaller share":                           {21, grant(func(g *pool.Grant) { g.Share = 1 }), false, true, false, 1},
		"a larger share in a quarantine":            {21, grant(func(g *pool.Grant) { g.Quarantined = 1 }), false, true, false, 4},
		"a smaller share in a quarantine":           {21, grant(func(g *pool.Grant) { g.Quarantined, g.Share = 1, 3 }), false, true, false, 3},
		"a quarantine that confirms an expired one": {21, grant(func(g *pool.Grant) { g.Quarantined = 1 }), true, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := have
			s.live = !tc.dead
			took, err := s.take(sent, pool.Command{Seq: tc.seq}, tc.grant)
			if took != tc.took || (err != nil) != tc.fails || s.units != tc.units {
				t.Errorf("took %v of %d units, error %v; want %v, %d, %v", took, s.units, err, tc.took, tc.units, tc.fails)
			}
			switch want := sent + int64(2*time.Second-400*time.Microsecond-time.Millisecond); {
			case !took && s != have:
				t.Errorf("what was not taken changed the share: %+v", s)
			case took && s.expires != want:
				t.Errorf("expires at %v, want %v: counted from before the beat, 200 ppm and a millisecond early", time.Duration(s.expires), time.Duration(want))
			}
		})
	}
}
