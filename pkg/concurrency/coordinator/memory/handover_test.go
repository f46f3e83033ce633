package memory_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func TestQuarantineIsCountedFromWhenTheMemoryBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		first bool
		after limiter.Micros
		want  limiter.Micros
	}{
		"the first of all":               {true, 0, 0},
		"at once":                        {false, 0, 2 * limiter.Second},
		"a pool that is asked for late":  {false, limiter.Second, limiter.Second},
		"when all shares have expired":   {false, 2 * limiter.Second, 0},
		"long after all shares expired ": {false, 900 * limiter.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := suite.NewClock(suite.Start)
			c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: tc.first})
			now.Advance(tc.after)
			if g := beat(t, c, web, pool.Command{Holder: "a", Seq: 1}); g.Quarantined != tc.want {
				t.Errorf("quarantined for %d, want %d", g.Quarantined, tc.want)
			}
		})
	}
}

// TestHandOverKeepsAQuarantine hands over in one: the pools that did not ask yet
// wait for the rest of it, like the one that did.
func TestHandOverKeepsAQuarantine(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 4})
	now.Advance(limiter.Second / 2)
	beat(t, c, web, pool.Command{Holder: "a", Seq: 1})
	data := export(t, c)
	now.Set(suite.Start * 2)
	c = memory.New(memory.Options{Clock: now.Now, Term: 5})
	if err := c.Import(data); err != nil {
		t.Fatal(err)
	}
	other := web
	other.Name = "other"
	for key, seq := range map[pool.Key]int64{web: 2, other: 1} {
		if g := beat(t, c, key, pool.Command{Holder: "a", Seq: seq}); g.Quarantined != 3*limiter.Second/2 {
			t.Errorf("%s is quarantined for %d", key, g.Quarantined)
		}
	}
}

// TestForgottenPoolsUseNoGenerationTwice lets a holder sleep until its pool is
// forgotten.
func TestForgottenPoolsUseNoGenerationTwice(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	var last pool.Grant
	for seq := range int64(9) {
		last = beat(t, c, web, pool.Command{Holder: string(rune('a' + seq)), Seq: 1})
	}
	now.Advance(pool.MaxTTL + 1)
	other := web
	other.Name = "other"
	beat(t, c, other, pool.Command{Holder: "b", Seq: 1})
	if got := c.Len(); got != 1 {
		t.Errorf("%d pools are kept, want 1", got)
	}
	back := beat(t, c, web, pool.Command{Holder: "i", Seq: 2, Term: last.Term, Applied: last.Generation})
	if back.Generation <= last.Generation || back.Share != 8 {
		t.Errorf("got %+v after %+v", back, last)
	}
	data := export(t, c)
	c = memory.New(memory.Options{Clock: now.Now, Term: 1})
	if err := c.Import(data); err != nil {
		t.Fatal(err)
	}
	other.Name = "third"
	if g := beat(t, c, other, pool.Command{Holder: "a", Seq: 1}); g.Generation <= last.Generation {
		t.Errorf("a pool begins with generation %d, used before", g.Generation)
	}
}

func TestPoolsInUseAreNotForgotten(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	beat(t, c, web, pool.Command{Holder: "a", Seq: 1})
	now.Advance(pool.MaxTTL)
	other := web
	other.Name = "other"
	beat(t, c, other, pool.Command{Holder: "a", Seq: 1})
	if got := c.Len(); got != 2 {
		t.Errorf("%d pools are kept, want 2", got)
	}
}

func TestAFailedImportChangesNothing(t *testing.T) {
	now := suite.NewClock(suite.Start)
	before := memory.New(memory.Options{Clock: now.Now, Term: 3, First: true})
	beat(t, before, web, pool.Command{Holder: "a", Seq: 1})
	good := export(t, before)
	for name, data := range map[string][]byte{
		"nothing":             nil,
		"another version":     append([]byte{9}, good[1:]...),
		"no stream":           {1, 2, 3},
		"the half of it":      good[:len(good)/2],
		"a byte that flipped": flip(good),
		"of a later term's":   good, // the coordinator's is 2
	} {
		t.Run(name, func(t *testing.T) {
			c := memory.New(memory.Options{Clock: now.Now, Term: 2})
			if err := c.Import(data); err == nil {
				t.Error("no error")
			}
			if g := beat(t, c, web, pool.Command{Holder: "b", Seq: 1}); c.Len() != 1 || g.Holders != 1 || g.Quarantined == 0 {
				t.Errorf("%d pools, %+v", c.Len(), g)
			}
		})
	}
}

func flip(data []byte) []byte {
	out := append([]byte{}, data...)
	out[len(out)/2] ^= 4
	return out
}

func TestExportIsRefusedWhenTooLarge(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	for i := range 100 {
		beat(t, c, web, pool.Command{Holder: fmt.Sprint(i), Seq: 1})
	}
	if data, err := c.Export(100); err == nil {
		t.Errorf("exported %d bytes into 100", len(data))
	}
}

func TestRefusalsNameTheirCause(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	_, err := c.Apply(t.Context(), web, params(1), pool.Command{Op: pool.Beat, Holder: "a", Seq: 1, Term: 2})
	unavailable, behind := (*store.UnavailableError)(nil), (*pool.BehindError)(nil)
	if !errors.As(err, &unavailable) || !errors.As(err, &behind) || behind.Term != 2 {
		t.Errorf("of a later term: %v", err)
	}
	c.Seal()
	if _, err = c.Apply(t.Context(), web, params(1), pool.Command{Op: pool.Beat, Holder: "a", Seq: 1}); !errors.As(err, &unavailable) || !errors.Is(err, memory.ErrSealed) {
		t.Errorf("sealed: %v", err)
	}
}
