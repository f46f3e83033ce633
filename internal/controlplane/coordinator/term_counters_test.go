package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A succession is what outlives its leaders.
type succession struct {
	t      *testing.T
	maps   *recordstest.ConfigMaps
	births *records.Births
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
		t: t, maps: recordstest.Holding(), births: records.NewBirths(recordstest.Holding()), terms: &memoryTerms{left: records.Handover{First: true}}, all: publishing(all...),
	}
	s.lead()
	return s
}

func (s *succession) lead() {
	s.leader = lead(s.t, s.terms, s.all, func(c *Config) {
		c.Births, c.Journals = s.births, records.NewCounters(s.maps)
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
	for _, record := range []string{records.CountersConfigMap, records.CountersName("shop/used")} {
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
		if len(s.maps.Held) != 2 || s.maps.Held[records.CountersName("shop/b")] == nil {
			t.Errorf("%d ConfigMaps are kept, want those of the terms and of the policy that is there", len(s.maps.Held))
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
		s.maps.Fail(errors.New("the API server is away"))
		s.gets(p, 1000, 99)
		s.lease(p, p.Limits[0])
		time.Sleep(5 * time.Second)
		reply := s.lease(p, p.Limits[0])
		if !reply.GetOfLimit() || reply.GetError() == "" || reply.GetDefect() {
			t.Errorf("reply = %v, want an outage of the limit", reply)
		}
		s.maps.Fail(nil)
		s.wait(5 * time.Second)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("when it is back: reply = %v", reply)
		}
		s.pass()
	})
}

// TestALostAnswerIsNotAnOutage: the record is found as it was written, and the next follows it.
func TestALostAnswerIsNotAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lasting("a", 32000)
		s := newSuccession(t, p)
		s.gets(p, 1, 1)
		for range 5 {
			time.Sleep(time.Second)
			s.maps.LoseAnswer()
			for range 5 {
				if reply := s.lease(p, p.Limits[0], want(500)); reply.GetError() != "" || reply.GetReason() != 0 {
					t.Errorf("reply = %v, want units", reply)
				}
			}
		}
		if s.maps.LosesAnswer() {
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
		term, err := memory.RecordTerm(s.maps.Held[records.CountersName("shop/a")].BinaryData["record"])
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
		"a delete": {func(s *succession, name string) { delete(s.maps.Held, name) }, 50},
		"a later term": {func(s *succession, name string) {
			var k *memory.Journal
			later := memory.New(memory.Options{
				Clock: s.present.Load().clock.Now, Term: 1 << 40, Keep: func(of *memory.Journal) { k = of },
			})
			p := lasting("a", 3200)
			later.Open(store.Scope{Cluster: "test", Namespace: "shop", Policy: "a", Limit: "other"}, p.Limits[0].Params(&p), 1)
			if err := k.Load(s.maps.Held[name].BinaryData["record"], nil); err != nil {
				s.t.Error(err)
			}
			data, _, err := k.Next()
			if err != nil || data == nil {
				s.t.Errorf("%d bytes, %v", len(data), err)
			}
			s.maps.Held[name].BinaryData["record"] = data
			s.maps.Write(s.maps.Held[name])
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lasting("a", 3200)
				s := newSuccession(t, p)
				s.gets(p, 1, 1)
				time.Sleep(time.Second)
				s.maps.Disturb = []func(){func() { c.do(s, records.CountersName("shop/a")) }}
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
