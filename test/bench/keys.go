package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/test/bench/traffic"
)

const (
	manyKeys   = 100_000
	keyRounds  = 9
	keyTurn    = time.Second
	callsEach  = 16 // under way at each process
	mostPerKey = 2.5
)

// A keyCase is what the users of a limit do.
type keyCase struct {
	name    string
	key     string  // of the descriptors
	limit   int64   // a second for each
	goal    float64 // least ratio of Weir's decisions to those of Envoy's service
	cheaper float64 // largest ratio of processor time, 0 when nothing is promised
	draw    func(seed uint64) func() int
}

func keyCases() []keyCase {
	return []keyCase{
		{"100,000 keys, each as likely", userKey, userLimit, 1.5, 0.7, func(seed uint64) func() int {
			r := rand.New(rand.NewPCG(seed, 5))
			return func() int { return r.IntN(manyKeys) }
		}},
		{"100,000 keys by a Zipf law", userKey, userLimit, 2, 0, func(seed uint64) func() int {
			law := rand.NewZipf(rand.New(rand.NewPCG(seed, 6)), 1.1, 1, manyKeys-1)
			return func() int { return int(law.Uint64()) }
		}},
		{"one hot key", plentifulKey, plenty, 3, 0, func(uint64) func() int {
			return func() int { return 0 }
		}},
	}
}

// overKeys sets processes that share limits over one Redis beside Envoy's rate limit
// service, where each of many keys is asked for rarely.
func overKeys(show func(*table)) error {
	s, err := openServices()
	if err != nil {
		return err
	}
	defer s.close()
	names := makeKeys(manyKeys)
	for _, c := range keyCases() {
		messages := make([][]byte, len(names))
		for i, name := range names {
			messages[i] = traffic.Message("keys", c.key, name)
		}
		turns := make([][]keyed, len(s.all))
		for range keyRounds {
			for i, of := range s.all {
				t, err := of.turn(c, messages)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, of.name, err)
				}
				turns[i] = append(turns[i], t)
			}
		}
		show(keyTable(c, s.all, turns))
	}
	return seenOnce(s.all[:2], show)
}

// keyed is what a service did in one turn.
type keyed struct {
	decisions int
	ns        float64 // per decision
	processor float64 // ns of the processes and their store, per decision
	store     float64 // ns of the store alone, per decision
	commands  float64 // inside the store, per decision
	p50, p99  float64 // ns
	most      int64   // admitted of one key in one second
}

// A keySecond is a key in a second.
type keySecond struct {
	key    int
	second int64
}

// turn has a service decide for a while.
func (s *service) turn(c keyCase, messages [][]byte) (t keyed, err error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var took []time.Duration
	var failed []error
	admitted := map[keySecond]int64{}
	from := time.Now().Add(lead)
	until := from.Add(keyTurn)
	for _, a := range s.askers {
		wait.Go(func() {
			var mine []traffic.Answer
			err := a.Keep(callsEach, from, until, messages, c.draw(rand.Uint64()), func(r traffic.Answer) { mine = append(mine, r) })
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
			for _, r := range mine {
				took = append(took, r.Took)
				if r.Admitted && r.Window > 0 {
					admitted[keySecond{r.Key, r.Window}]++
				}
			}
		})
	}
	time.Sleep(time.Until(from))
	before, err := s.spent()
	if err != nil {
		return t, err
	}
	time.Sleep(time.Until(until))
	after, err := s.spent()
	wait.Wait()
	if err := errors.Join(append(failed, err)...); err != nil {
		return t, err
	}
	for _, n := range admitted {
		t.most = max(t.most, n)
	}
	t.decisions = len(took)
	n := float64(t.decisions)
	t.ns = float64(after.at.Sub(before.at)) / n
	t.processor, t.commands = float64(after.processor-before.processor)/n, float64(after.commands-before.commands)/n
	slices.Sort(took)
	t.store = float64(after.store-before.store) / n
	t.p50, t.p99 = traffic.Percentile(took, 500), traffic.Percentile(took, 990)
	return t, nil
}

// spending is what a service has used so far.
type spending struct {
	at        time.Time
	processor time.Duration
	store     time.Duration
	commands  int64
}

func (s *service) spent() (so spending, err error) {
	so.at = time.Now()
	if so.processor, err = processorTime(s.pids); err != nil {
		return so, err
	}
	if so.store, err = processorTime(s.pids[:1]); err != nil {
		return so, err
	}
	so.commands, err = commandsOf(s.redis)
	return so, err
}

// keyTable makes the table of a case: the first service is the one that the others are set
// beside, the second the one that has goals.
func keyTable(c keyCase, all []*service, turns [][]keyed) *table {
	t := &table{
		title: "Redis, " + c.name,
		note: fmt.Sprintf("%d processes of each service over a Redis of its own, %d calls of Envoy's always under way at each, %s a second for each key. "+
			"The services take turns. Processor time is that of the processes and of their Redis; commands are those that Redis counts, in scripts too. "+
			"Admitted is the most of one key in one second, counting requests that were sent and answered in it.", fleet, callsEach, grouped(c.limit)),
		head: []string{"", "decisions/s", "× " + all[0].name, "95 %", "processor µs", "×", "95 %", "of Redis", "commands in Redis", "p50 µs", "p99 µs", "admitted", ""},
	}
	of := func(i int, f func(keyed) float64) []float64 {
		out := make([]float64, len(turns[i]))
		for j, turn := range turns[i] {
			out[j] = f(turn)
		}
		return out
	}
	mid := func(v []float64) float64 {
		m, _, _ := median(v)
		return m
	}
	ns := func(k keyed) float64 { return k.ns }
	processor := func(k keyed) float64 { return k.processor }
	commands := func(k keyed) float64 { return k.commands }
	for i, s := range all {
		faster, fLow, fHigh := median(quotients(of(0, ns), of(i, ns)))
		cost, cLow, cHigh := median(quotients(of(i, processor), of(0, processor)))
		most := int64(0)
		for _, turn := range turns[i] {
			most = max(most, turn.most)
		}
		verdict := ""
		if i == 1 {
			verdict = fmt.Sprintf("decisions ≥ %g ×: %s", c.goal, met(faster >= c.goal))
			if c.cheaper > 0 {
				verdict += fmt.Sprintf(", processor ≤ %g ×: %s", c.cheaper, met(cost <= c.cheaper))
			}
			verdict += fmt.Sprintf(", commands ≤ %g: %s", mostPerKey, met(mid(of(i, commands)) <= mostPerKey))
		}
		t.add(s.name, fmt.Sprintf("%.0f", 1e9/mid(of(i, ns))), fmt.Sprintf("%.2f", faster), fmt.Sprintf("%.2f–%.2f", fLow, fHigh),
			micros(mid(of(i, processor))), fmt.Sprintf("%.2f", cost), fmt.Sprintf("%.2f–%.2f", cLow, cHigh),
			micros(mid(of(i, func(k keyed) float64 { return k.store }))), fmt.Sprintf("%.3f", mid(of(i, commands))), micros(mid(of(i, func(k keyed) float64 { return k.p50 }))),
			micros(mid(of(i, func(k keyed) float64 { return k.p99 }))), fmt.Sprintf("%s of %s", grouped(most), grouped(c.limit)), verdict)
	}
	return t
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
