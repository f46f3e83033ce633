package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	tripwire "github.com/weir-dev/weir/test/bench/quality"
)

// quality shows what clients and the backend get out of a limit that follows latency.
func quality(show func(*table)) error {
	runs, err := simulate()
	if err != nil {
		return err
	}
	for len(runs) > 0 {
		load, peer := runs[0].Load, tripwire.Run{}
		t := &table{
			title: fmt.Sprintf("%.0f requests/s, %s at 50 ms", load.PerSecond, load.Name),
			note: "A backend of 12 threads takes 50 ms, then 150, then 50 again, a minute each, in virtual time. Figures of each minute: " +
				"requests/s answered within a second, latency at the backend with its queue (median / 99th percentile), most in flight, refused.",
			head: []string{"", "50 ms", "150 ms", "50 ms again", ""},
		}
		for ; len(runs) > 0 && runs[0].Load.Name == load.Name; runs = runs[1:] {
			r, verdict := runs[0], ""
			switch r.Contender {
			case tripwire.Failsafe:
				peer = r
			case tripwire.Weir:
				verdict = beside(r, peer)
			}
			cells := []string{fmt.Sprintf("%s, processes: %d", r.Contender, r.Load.Processes)}
			for _, p := range r.Phases {
				cells = append(cells, outcome(p))
			}
			t.add(append(cells, verdict)...)
		}
		show(t)
	}
	return nil
}

// simulate returns the runs. They take place in virtual time, which is for tests only,
// so a test does them.
func simulate() ([]tripwire.Run, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "runs.json")
	test := exec.Command("go", "test", "-count=1", "-run", "^TestTripwire$", "./quality", "-runs", file) //nolint:gosec,noctx // the file is ours
	if out, err := test.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var runs []tripwire.Run
	return runs, json.Unmarshal(data, &runs)
}

// outcome is a cell of one phase.
func outcome(p tripwire.Phase) string {
	return fmt.Sprintf("%.0f/s, %s / %s, %d, %.0f %%", p.Goodput, inMillis(p.P50), inMillis(p.P99), p.Peak, 100*p.Refused)
}

func inMillis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// beside says how a run compares with that of the peer under the same load.
func beside(r, peer tripwire.Run) string {
	const noise = 0.02
	goodput, p99 := r.Goodput()/peer.Goodput(), float64(r.P99())/float64(peer.P99())
	return fmt.Sprintf("in time %.2f × failsafe-go, goal ≥ 1: %s. Worst p99 %.2f ×, goal ≤ 1: %s. At most %d over the limit, goal 0: %s.",
		goodput, met(goodput >= 1-noise), p99, met(p99 <= 1+noise), r.Exceeded, met(r.Exceeded == 0))
}

func met(yes bool) string {
	if yes {
		return "met"
	}
	return "missed"
}
