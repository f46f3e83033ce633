package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

// A sharer is a process as the pools' bound needs it: it uses a share for as long as
// that lasts by its own clock, from before it beat.
type sharer struct {
	session *session
	holder
	nonce   string
	expires time.Time
}

// uses returns how much it may have in flight now.
func (s *sharer) uses() int64 {
	if !time.Now().Before(s.expires) {
		return 0
	}
	return s.held
}

// take adopts an answer. It takes nothing new from a quarantine.
func (s *sharer) take(sent time.Time, share *fleetpb.Share) {
	units := share.GetShare()
	if share.GetQuarantinedMicros() > 0 {
		units = min(units, s.uses())
	}
	s.term, s.applied, s.held = share.GetTerm(), share.GetGeneration(), units
	s.expires = sent.Add(time.Duration(share.GetTtlMicros()) * time.Microsecond)
}

// Over random terms that end in order or by a crash, processes that start again, and
// answers that get lost or come late, the shares in use never exceed the limit, and a
// fleet that is left alone comes to use all of it.
func TestNoChangeOfLeaderSharesTwice(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &poolTerms{T: t, rng: rand.New(rand.NewPCG(seed, 1)), terms: first(), pool: pooled("shop", 1, 20)}
				for range 6 {
					w.lead(w.rng.IntN(40), true)
				}
				w.terms.left.Pools = nil // a crash
				w.lead(60, false)
				if sum := w.inUse(); sum != 20 {
					t.Errorf("in the end %d of 20 are in use", sum)
				}
			})
		})
	}
}

type poolTerms struct {
	*testing.T
	rng     *rand.Rand
	terms   *memoryTerms
	pool    *policy.Pool
	sharers [4]sharer
	boots   int
}

// lead leads one term of some beats, with misfortunes or without.
func (w *poolTerms) lead(beats int, misfortunes bool) {
	begun, err := w.terms.Begin(w.Context(), leads)
	if err != nil {
		w.Fatal(err)
	}
	term := newTerm(New(Config{Terms: w.terms}), begun, logr.Discard())
	defer term.tasks.ShutDown()
	config, err := newConfig(policy.Snapshot{Cluster: "test", Pool: w.pool}, nil)
	if err != nil {
		w.Fatal(err)
	}
	for i := range w.sharers {
		w.sharers[i].session = nil // its stream broke
	}
	for range beats {
		for i := range w.sharers {
			s := &w.sharers[i]
			if misfortunes && w.rng.IntN(20) == 0 {
				*s = sharer{}
			}
			if s.session == nil {
				w.connect(i, config)
			}
			w.beat(term, s, misfortunes)
			time.Sleep(time.Duration(w.rng.Int64N(int64(200 * time.Millisecond))))
			if sum := w.inUse(); sum > 20 {
				w.Fatalf("%d of 20 are in use in term %d", sum, begun.Term)
			}
		}
	}
	if w.rng.IntN(2) == 0 {
		term.stepDownForTest()
	}
	time.Sleep(time.Duration(w.rng.Int64N(int64(time.Second))))
}

// connect opens a session; a process that is new has another nonce than all before.
func (w *poolTerms) connect(i int, config *config) {
	s := &w.sharers[i]
	if s.seq == 0 {
		w.boots++
		s.nonce = fmt.Sprint(w.boots)
	}
	s.session = newSession(pod("shop", fmt.Sprint("web-", i)), &fleetpb.Hello{BootNonce: s.nonce}, func(error) {})
	s.session.serve(config, true)
}

// beat beats; the answer may get lost, or come so late that the share has expired.
func (w *poolTerms) beat(term *term, s *sharer, misfortunes bool) {
	held := s.held
	s.held = s.uses()
	sent, message := time.Now(), s.message(w.pool)
	s.held = held
	share := term.beat(w.Context(), s.session, message).GetShare()
	if share.GetError() != "" {
		w.Fatal(share.GetError())
	}
	if misfortunes {
		switch w.rng.IntN(10) {
		case 0:
			return
		case 1:
			time.Sleep(time.Duration(w.rng.Int64N(int64(leaseTTL))))
		}
	}
	s.take(sent, share)
}

func (w *poolTerms) inUse() (sum int64) {
	for i := range w.sharers {
		sum += w.sharers[i].uses()
	}
	return sum
}
