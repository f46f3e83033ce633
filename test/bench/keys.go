package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
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
	apart   bool    // the services run on one processor, and the client on the others
	draw    func(seed uint64) func() int
}

func keyCases() []keyCase {
	return []keyCase{
		{"100,000 keys, each as likely", userKey, userLimit, 1.5, 0.7, false, eachAsLikely},
		{"100,000 keys, each as likely, on one processor", userKey, userLimit, 1.5, 0.7, true, eachAsLikely},
		{"100,000 keys by a Zipf law", userKey, userLimit, 2, 0, false, func(seed uint64) func() int {
			law := rand.NewZipf(rand.New(rand.NewPCG(seed, 6)), 1.1, 1, manyKeys-1)
			return func() int { return int(law.Uint64()) }
		}},
		{"one hot key", plentifulKey, plenty, 3, 0, false, func(uint64) func() int {
			return func() int { return 0 }
		}},
	}
}

func eachAsLikely(seed uint64) func() int {
	r := rand.New(rand.NewPCG(seed, 5))
	return func() int { return r.IntN(manyKeys) }
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
		if c.apart && runtime.NumCPU() < 2 {
			continue
		}
		turns, err := s.rounds(c, names)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		show(keyTable(c, s.all, turns))
	}
	return seenOnce(s.all[:2], show)
}

// rounds has the services take turns, and returns those of each.
func (s *services) rounds(c keyCase, names []string) (turns [][]keyed, err error) {
	if c.apart {
		together, failed := s.apart()
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, together()) }()
	}
	messages := make([][]byte, len(names))
	for i, name := range names {
		messages[i] = traffic.Message("keys", c.key, name)
	}
	turns = make([][]keyed, len(s.all))
	for range keyRounds {
		for i, of := range s.all {
			t, err := of.turn(c, messages)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// keyed is what a service did in one turn.
type keyed struct {
	decisions int
	ns        float64 // per decision
	processor float64 // ns of the processes and their store, per decision
	client    float64 // ns of this program, per decision
	store     float64 // ns of the store alone, per decision
	commands  float64 // inside the store, per decision
	p50, p99  float64 // ns
	most      int64   // admitted of one key in one second
	refused   float64 // part of the decisions
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
	refused := 0
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
				if !r.Admitted {
					refused++
				}
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
	t.refused = float64(refused) / n
	t.ns = float64(after.at.Sub(before.at)) / n
	t.processor, t.commands = float64(after.processor-before.processor)/n, float64(after.commands-before.commands)/n
	slices.Sort(took)
	t.store = float64(after.store-before.store) / n
	t.client = float64(after.client-before.client) / n
	t.p50, t.p99 = traffic.Percentile(took, 500), traffic.Percentile(took, 990)
	return t, nil
}

// spending is what a service has used so far.
type spending struct {
	at        time.Time
	processor time.Duration
	store     time.Duration
	client    time.Duration
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
	if so.client, err = processClock(os.Getpid()); err != nil {
		return so, err
	}
	so.commands, err = commandsOf(s.redis)
	return so, err
}
