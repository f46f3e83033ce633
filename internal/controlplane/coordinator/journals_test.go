package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A succession is what outlives its leaders.
type succession struct {
	t      *testing.T
	maps   *configMaps
	births *keptBirths
	terms  *memoryTerms
	all    *policies
	*leader
	*sidecar
}

// lasting returns a policy of a day whose counters are durable.
func lasting(name string, limit int64) policy.Policy {
	p := limited("shop", 1, limit, day)
	p.Name, p.Limits[0].Retention.Durable = name, true
	return p
}

func newSuccession(t *testing.T, all ...policy.Policy) *succession {
	time.Sleep(time.Hour) // no window begins now
	s := &succession{
		t: t, maps: holding(), births: &keptBirths{}, terms: &memoryTerms{left: Handover{First: true}}, all: publishing(all...),
	}
	s.lead()
	return s
}

func (s *succession) lead() {
	s.leader = lead(s.t, s.terms, s.all, func(c *Config) {
		c.Births, c.Journals = s.births, NewConfigMapJournals(s.maps)
		c.Limits = s.all.limits
	})
	s.wait(time.Second)
}

// limits returns all limits that exist.
func (p *policies) limits(context.Context) (map[store.Scope]struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there := map[store.Scope]struct{}{}
	for _, of := range p.all {
		for _, l := range of.Limits {
			there[store.Scope{Cluster: "test", Namespace: of.Namespace, Policy: of.Name, Limit: l.Name}] = struct{}{}
		}
	}
	return there, nil
}

// wait has the sidecar come, again when it was there, after a time.
func (s *succession) wait(d time.Duration) {
	if s.sidecar != nil {
		s.sidecar.close()
	}
	time.Sleep(d)
	s.sidecar = s.connect(pod("shop", "web-0"), "1")
	s.sidecar.config()
}

// kill has another leader begin after one that did not hand over.
func (s *succession) kill() {
	s.terms.left.Term++
	s.pass()
	time.Sleep(time.Second)
	s.lead()
}

// pass ends a leader in order.
func (s *succession) pass() {
	s.leader.end()
	s.sidecar.close()
	s.sidecar = nil
}

// publish puts other policies in force.
func (s *succession) publish(all ...policy.Policy) {
	s.all.set(true, all...)
	s.Refresh("shop")
	synctest.Wait()
	s.sidecar.config()
}

func (s *succession) gets(p policy.Policy, n, granted int64) {
	s.t.Helper()
	reply := s.lease(p, p.Limits[0], want(n))
	if reply.GetGranted() != granted {
		s.t.Errorf("%s: reply = %v, want %d units", p.Name, reply, granted)
	}
}

func TestADayGoesOnWithTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, unused := lasting("used", 1600), lasting("unused", 1600)
		s := newSuccession(t, unused, used)
		s.gets(used, 20, 20)
		var granted, total int64 = 20, 0
		for range 200 {
			s.kill()
			reply := s.lease(used, used.Limits[0])
			if reply.GetGranted() != 1 {
				t.Fatalf("after %d kills: reply = %v", granted-20, reply)
			}
			granted++
			total = reply.GetWindows()[0].GetGranted()
		}
		t.Logf("%d granted, %d forfeited of 1600 by 200 kills", granted, total-granted)
		if total < granted || total-granted > 200 {
			t.Errorf("%d units count, %d were granted", total, granted)
		}
		s.gets(unused, 1, 1)
		s.pass()
		s.lead()
		s.gets(used, 1, 1)
		s.pass()
	})
}

// TestADayIsServedAsFastByTheNextLeader has a leader end in order while many ask.
func TestADayIsServedAsFastByTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := lasting("used", 6000)
		s := newSuccession(t, used)
		serve := func() (granted int64) {
			for range 40 {
				reply := s.lease(used, used.Limits[0], want(40))
				granted += reply.GetGranted()
				time.Sleep(100 * time.Millisecond)
			}
			return granted
		}
		before := serve()
		s.pass()
		s.lead()
		if after := serve(); after < before*9/10 {
			t.Errorf("%d units in 4 s before the hand-over, and %d after it", before, after)
		}
		s.pass()
	})
}

// TestOpenWindowsWaitWhenARecordIsGone holds that of the outages, in which a sidecar may have
// begun them by itself, and that of a policy.
func TestOpenWindowsWaitWhenARecordIsGone(t *testing.T) {
	for _, record := range []string{CountersConfigMap, countersName("shop/used")} {
		t.Run(record, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lasting("used", 1600)
				s := newSuccession(t, p)
				s.gets(p, 20, 20)
				s.kill()
				s.gets(p, 20, 20)
				s.pass()
				s.terms.left.Term++
				if err := s.maps.Delete(t.Context(), record, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				s.lead()
				s.gets(p, 1, 0)
				s.wait(24 * time.Hour)
				s.gets(p, 1, 1)
				s.pass()
			})
		})
	}
}

func TestADeletedPolicyFindsItsCountAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, other := lasting("a", 32), lasting("b", 32)
		s := newSuccession(t, p, other)
		s.gets(p, 1, 1)
		for range 40 {
			s.lease(p, p.Limits[0])
			s.wait(time.Second)
		}
		s.publish(other)
		s.wait(time.Hour)
		s.kill()
		s.publish(p, other)
		s.gets(p, 1, 0)
		s.publish(other)
		s.wait(5 * 24 * time.Hour)
		if len(s.maps.held) != 2 || s.maps.held[countersName("shop/b")] == nil {
			t.Errorf("%d ConfigMaps are kept, want those of the terms and of the policy that is there", len(s.maps.held))
		}
		s.pass()
	})
}

func TestWhatIsGrantedInAnotherWayIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		durable, volatile := lasting("a", 32), lasting("a", 32)
		volatile.Generation, volatile.Limits[0].Retention = 2, limiter.Retention{}
		s := newSuccession(t, durable)
		s.gets(durable, 1, 1)
		s.publish(volatile)
		s.gets(volatile, 31, 31)
		again := durable
		again.Generation = 3
		s.all.set(true, again)
		s.kill()
		if reply := s.lease(again, again.Limits[0]); reply.GetReason() != int32(limiter.Amnesia) {
			t.Errorf("reply = %v, want Amnesia", reply)
		}
		s.pass()
	})
}

func TestALeaderWithoutTheAPIServerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lasting("a", 3200)
		s := newSuccession(t, p)
		s.gets(p, 1, 1)
		time.Sleep(time.Second)
		s.maps.fail(errors.New("the API server is away"))
		s.gets(p, 1000, 99)
		s.lease(p, p.Limits[0])
		time.Sleep(5 * time.Second)
		reply := s.lease(p, p.Limits[0])
		if !reply.GetOfLimit() || reply.GetError() == "" || reply.GetDefect() {
			t.Errorf("reply = %v, want an outage of the limit", reply)
		}
		s.maps.fail(nil)
		s.wait(5 * time.Second)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("when it is back: reply = %v", reply)
		}
		s.pass()
	})
}

func (c *configMaps) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
}

// loseAnswer has the next update be written and its answer be lost.
func (c *configMaps) loseAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unheard = true
}

func (c *configMaps) losesAnswer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard
}

// TestALostAnswerIsNotAnOutage: the record is found as it was written, and the next follows it.
func TestALostAnswerIsNotAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lasting("a", 32000)
		s := newSuccession(t, p)
		s.gets(p, 1, 1)
		for range 5 {
			time.Sleep(time.Second)
			s.maps.loseAnswer()
			for range 5 {
				if reply := s.lease(p, p.Limits[0], want(500)); reply.GetError() != "" || reply.GetReason() != 0 {
					t.Errorf("reply = %v, want units", reply)
				}
			}
		}
		if s.maps.losesAnswer() {
			t.Error("nothing was written")
		}
		s.pass()
	})
}

// TestARecordIsOfItsTerm, by which a leader that was replaced knows that it was.
func TestARecordIsOfItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lasting("a", 3200)
		s := newSuccession(t, p)
		s.gets(p, 1, 1)
		term, err := memory.RecordTerm(s.maps.held[countersName("shop/a")].BinaryData[countersKey])
		if want := s.present.Load().number; err != nil || term != want {
			t.Errorf("the record is of term %d, error %v; want %d", term, err, want)
		}
		s.pass()
	})
}

func TestARecordThatSomebodyElseWrote(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*succession, string)
		want int64
	}{
		"nobody":   {func(*succession, string) {}, 50},
		"a delete": {func(s *succession, name string) { delete(s.maps.held, name) }, 50},
		"a later term": {func(s *succession, name string) {
			var k *memory.Journal
			later := memory.New(memory.Options{
				Clock: s.present.Load().clock.Now, Term: 1 << 40, Keep: func(of *memory.Journal) { k = of },
			})
			p := lasting("a", 3200)
			later.Open(store.Scope{Cluster: "test", Namespace: "shop", Policy: "a", Limit: "other"}, p.Limits[0].Params(&p), 1)
			if err := k.Load(s.maps.held[name].BinaryData[countersKey], nil); err != nil {
				s.t.Error(err)
			}
			data, _, err := k.Next()
			if err != nil || data == nil {
				s.t.Errorf("%d bytes, %v", len(data), err)
			}
			s.maps.held[name].BinaryData[countersKey] = data
			s.maps.write(s.maps.held[name])
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lasting("a", 3200)
				s := newSuccession(t, p)
				s.gets(p, 1, 1)
				time.Sleep(time.Second)
				s.maps.disturb = []func(){func() { c.do(s, countersName("shop/a")) }}
				s.gets(p, 99, 99)
				s.lease(p, p.Limits[0], want(50))
				time.Sleep(2 * time.Second)
				reply := s.lease(p, p.Limits[0], want(50))
				if got := reply.GetGranted(); got != c.want {
					t.Errorf("granted %d, want %d: %v", got, c.want, reply)
				}
				s.pass()
			})
		})
	}
}

// TestTheOldestOutagesAreOne where there are more than are remembered.
func TestTheOldestOutagesAreOne(t *testing.T) {
	const month = limiter.Instant(limiter.MaxWindow)
	last := outages{Term: 2, At: 5 * month}
	for i := range limiter.Instant(maxOutages) {
		last.Gaps = append(last.Gaps, limiter.Gap{From: 6*month + 10*i, To: 6*month + 10*i + 5})
	}
	got := last.follow(3, 6*month+10*maxOutages, 6*month+10*maxOutages+9, 6*month+10*maxOutages+5).Gaps
	if len(got) != maxOutages || got[0].From != 6*month || got[0].To != 6*month+15 || got[1].From != 6*month+20 {
		t.Errorf("%d outages, the first %v; want %d, the first two as one", len(got), got[:2], maxOutages)
	}
}

func TestOutagesFollowEachOther(t *testing.T) {
	const month = limiter.Instant(limiter.MaxWindow)
	gaps := func(all ...limiter.Gap) []limiter.Gap { return all }
	for name, c := range map[string]struct {
		last   outages
		term   uint64
		served limiter.Instant
		want   []limiter.Gap
	}{
		"there is none before the first":                 {outages{}, 3, 0, nil},
		"from when the term before renewed":              {outages{Term: 2, At: 5 * month}, 3, 8 * month, gaps(limiter.Gap{From: 8 * month, To: 9 * month})},
		"from when one served, when another is unknown":  {outages{Term: 1, At: 5 * month}, 3, 8 * month, gaps(limiter.Gap{From: 5 * month, To: 9 * month})},
		"from when one served, when no Lease says more":  {outages{Term: 2, At: 5 * month}, 3, 0, gaps(limiter.Gap{From: 5 * month, To: 9 * month})},
		"those before stay while a window may look back": {outages{Term: 2, At: 5 * month, Gaps: gaps(limiter.Gap{From: 1, To: 7 * month}, limiter.Gap{From: 2, To: 7*month + 9})}, 3, 8 * month, gaps(limiter.Gap{From: 2, To: 7*month + 9}, limiter.Gap{From: 8 * month, To: 9 * month})},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.last.follow(c.term, c.served, 8*month, 9*month)
			if diff := cmp.Diff(c.want, got.Gaps); diff != "" || got.Term != c.term || got.At != 8*month {
				t.Errorf("got %+v\n%s", got, diff)
			}
		})
	}
}
