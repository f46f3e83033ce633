package federation_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A nursery is a model of budgets that are new: memories that are lost, clusters that take
// part late, leave and come back, lists that change at different times in different
// clusters, and commands that arrive late. All grants count as admitted.
type nursery struct {
	lists   [][]string // of members: a cluster's list goes from one to the next
	joins   []int      // the list that each cluster begins with, once all others that take part have it
	losses  int
	windows int64
	sends   int // of each cluster
	leaves  int // how often clusters delete the budget
	crashes int // of clusters' processes

	rules nurseryRules
	spare int64
}

// nurseryRules are what clusters and the ledger keep to. A weakening replaces one.
type nurseryRules struct {
	vouch  func(b birth.Birth, list []string, met int64) (born, list64 int64)
	follow func(birth.Birth, []string) birth.Birth
	late   func(c *cluster, now int64) bool // no window is open any more that the cluster took part in
	step   func(ledger.State, ledger.Params, limiter.Instant, ledger.Command) (ledger.State, ledger.Grant)
	first  bool // a memory is met before anything is asked
	listed bool // a cluster is listed before it takes part
}

func productionBirths() nurseryRules {
	return nurseryRules{
		vouch:  func(b birth.Birth, list []string, _ int64) (int64, int64) { return b.Vouch(list) },
		follow: func(b birth.Birth, list []string) birth.Birth { return b.Follow("store", list) },
		late:   func(c *cluster, now int64) bool { return !c.has && now > c.seen },
		step:   ledger.State.Step,
		first:  true,
		listed: true,
	}
}

// A cradle is a state of it.
type cradle struct {
	now      int64 // window
	memory   coordinator
	losses   int
	leaves   int
	crashes  int
	clusters []cluster
	mail     []request
	granted  []int64 // of each window, by all memories
}

// A cluster is what it has written down, and what its process learned.
type cluster struct {
	has    bool  // the budget
	knows  bool  // of it is remembered something:
	seen   int64 // window in which it had it last
	of     birth.Birth
	list   int
	learnt int64 // term of a memory, not written down yet
	sent   int
}

type request struct {
	list    int
	command ledger.Command
}

func (n *nursery) model() explore.Model[cradle, string] {
	w := cradle{memory: coordinator{knows: ledger.Memory{Term: 1, Since: opens(0) + 1}}, granted: make([]int64, n.windows)}
	for _, list := range n.joins {
		w.clusters = append(w.clusters, cluster{list: list})
	}
	return explore.Model[cradle, string]{
		Init: []cradle{w}, Next: n.next, Encode: n.encode, Bound: 3_000_000,
		Check: func(w cradle) error {
			for i, units := range w.granted {
				if units > 1-n.spare {
					return fmt.Errorf("%d granted in window %d of 1", units, i)
				}
			}
			return nil
		},
	}
}

// create gives a cluster the budget, which is written down before anything is asked.
func (n *nursery) create(c *cluster, now int64) {
	if !c.knows {
		c.of = birth.New("store", n.lists[c.list])
	} else {
		c.of = n.rules.follow(c.of, n.lists[c.list])
	}
	c.has, c.knows, c.seen, c.learnt = true, true, now, 0
}

// ready reports whether all others that take part have the list that a cluster begins with.
func (n *nursery) ready(w *cradle, of int) bool {
	for i := range w.clusters {
		if n.rules.listed && w.clusters[i].list < n.joins[of] {
			return false
		}
	}
	return true
}

// forget drops what a cluster remembers that does not matter any more. No command of it is
// under way then.
func (n *nursery) forget(w *cradle, i int) {
	c := &w.clusters[i]
	under := slices.ContainsFunc(w.mail, func(r request) bool { return r.command.Member == name(i) })
	if c.knows && !under && n.rules.late(c, w.now) {
		c.knows, c.of = false, birth.Birth{}
	}
}

func (n *nursery) params(list int) ledger.Params {
	p := ledger.Params{Limit: 1, Window: limiter.MinWindow, Strategy: ledger.FirstCome}
	for _, name := range n.lists[list] {
		p.Members = append(p.Members, ledger.Member{Name: name, Weight: 1, Borrowing: -1})
	}
	return p
}

func (n *nursery) next(w cradle) iter.Seq2[string, cradle] {
	return func(yield func(string, cradle) bool) {
		for _, steps := range []iter.Seq2[string, cradle]{n.passes(w), n.works(w), n.arrives(w)} {
			for what, next := range steps {
				if !yield(what, next) {
					return
				}
			}
		}
	}
}

func (n *nursery) passes(w cradle) iter.Seq2[string, cradle] {
	return func(yield func(string, cradle) bool) {
		if w.now+1 < n.windows {
			next := w.clone()
			next.now++
			for i := range next.clusters {
				if c := &next.clusters[i]; c.has {
					c.seen = next.now
				}
				n.forget(&next, i)
			}
			if !yield("a window begins", next) {
				return
			}
		}
		if w.losses < n.losses {
			next := w.clone()
			next.losses++
			next.memory = coordinator{knows: ledger.Memory{Term: w.memory.knows.Term + 1, Since: opens(w.now) + 1}}
			yield("the memory is lost", next)
		}
	}
}

// works yields what clusters do.
func (n *nursery) works(w cradle) iter.Seq2[string, cradle] {
	return func(yield func(string, cradle) bool) {
		try := func(i int, what string, change func(next *cradle, c *cluster)) bool {
			next := w.clone()
			change(&next, &next.clusters[i])
			return yield(name(i)+" "+what, next)
		}
		for i, c := range w.clusters {
			switch {
			case !c.has && n.ready(&w, i):
				if !try(i, "has the budget", func(_ *cradle, c *cluster) { n.create(c, w.now) }) {
					return
				}
				continue
			case !c.has:
				continue
			}
			if w.leaves < n.leaves && !try(i, "deletes the budget", func(next *cradle, c *cluster) {
				c.has, next.leaves = false, w.leaves+1
				n.forget(next, i)
			}) {
				return
			}
			if w.crashes < n.crashes && !try(i, "starts again", func(next *cradle, c *cluster) { c.learnt, next.crashes = 0, w.crashes+1 }) {
				return
			}
			if c.list+1 < len(n.lists) && !try(i, "takes over the list", func(_ *cradle, c *cluster) {
				c.list++
				c.of = n.rules.follow(c.of, n.lists[c.list])
			}) {
				return
			}
			if !n.asks(try, i, c, w.memory.knows.Term) {
				return
			}
		}
	}
}

// asks yields how a cluster comes to ask.
func (n *nursery) asks(try func(int, string, func(*cradle, *cluster)) bool, i int, c cluster, term int64) bool {
	switch {
	case c.of.Unmet() && c.learnt == 0:
		if !try(i, "learns which memory serves", func(_ *cradle, c *cluster) { c.learnt = term }) {
			return false
		}
	case c.of.Unmet():
		if !try(i, "writes down which memory it met", func(_ *cradle, c *cluster) { c.of = c.of.Meet(c.learnt) }) {
			return false
		}
	}
	if c.sent == n.sends || n.rules.first && c.of.Unmet() || !slices.Contains(n.lists[c.list], name(i)) {
		return true
	}
	return try(i, "asks", func(next *cradle, c *cluster) {
		c.sent++
		born, list := n.rules.vouch(c.of, n.lists[c.list], term)
		next.mail = append(next.mail, request{list: c.list, command: ledger.Command{
			Op: ledger.Lease, Member: name(i), Holder: name(i), Seq: int64(c.sent), Min: 1, Want: 1, Born: born, List: list,
		}})
	})
}

// arrives yields the arrival of each command at the memory that serves. A grant that was
// made already is sent again.
func (n *nursery) arrives(w cradle) iter.Seq2[string, cradle] {
	return func(yield func(string, cradle) bool) {
		for i, r := range w.mail {
			next := w.clone()
			next.mail = slices.Delete(next.mail, i, i+1)
			c, before := r.command, total(w.memory.state, w.now)
			c.Memory = w.memory.knows
			next.memory.state, _ = n.rules.step(w.memory.state, n.params(r.list), opens(w.now), c)
			next.granted[w.now] += total(next.memory.state, w.now) - before
			if !yield(fmt.Sprintf("%d of %s arrives", c.Seq, c.Member), next) {
				return
			}
		}
	}
}

// total returns what a memory granted of a window.
func total(s ledger.State, window int64) (units int64) {
	if s.Index != int64(opens(window))/int64(limiter.MinWindow) {
		return 0
	}
	for _, a := range s.Accounts {
		units += a.Granted
	}
	return units
}

func (w cradle) clone() cradle {
	w.clusters, w.mail, w.granted = slices.Clone(w.clusters), slices.Clone(w.mail), slices.Clone(w.granted)
	return w
}

// encode writes all that matters.
func (n *nursery) encode(b []byte, w cradle) []byte {
	for _, v := range []int64{w.now, w.memory.knows.Term, int64(w.memory.knows.Since), int64(w.losses), int64(w.leaves), int64(w.crashes)} {
		b = binary.AppendVarint(b, v)
	}
	s := w.memory.state
	b = fmt.Append(b, s.Index, s.Term, s.Accounts, s.Vouches, w.clusters, w.granted)
	mail := make([]string, len(w.mail))
	for i, r := range w.mail {
		mail[i] = fmt.Sprint(r.list, r.command.Member, r.command.Seq, r.command.Born, r.command.List)
	}
	slices.Sort(mail)
	return fmt.Append(b, mail)
}

func TestNewBudgetsKeepTheBoundInEveryHistory(t *testing.T) {
	for _, m := range nurseries() {
		t.Run(m.name, func(t *testing.T) {
			explore.Hold(t, m.of.model(), nil)
			tight := *m.of
			tight.spare = 1
			explore.RefuteIn(t, tight.model(), m.steps)
		})
	}
}

func TestEveryRuleOfBirthsIsNeeded(t *testing.T) {
	for _, w := range weakBirths() {
		t.Run(w.name, func(t *testing.T) {
			explore.RefuteIn(t, w.of.model(), w.steps)
		})
	}
}
