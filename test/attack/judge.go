package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// rowTime is how long an attack may take, with what it waits for.
	rowTime = time.Minute

	// answerTime bounds the creation of a pod of the victim. The API server gives a webhook 5
	// seconds; on a machine that does nothing else an answer takes some 20 ms.
	answerTime = 2500 * time.Millisecond

	// leastServed is the part of the limit that each window of the victim admits at least. It
	// admits all of it, unless the machine is so short of processors that the load is not sent.
	leastServed = 0.9
)

// A judge plays attacks and looks at their effects.
type judge struct {
	*world
	played  int
	failed  []error
	peaks   map[string]int64 // of processes, over all rows
	windows int              // of the victim that were judged
	from    time.Time        // of the next of these
}

func newJudge(w *world) *judge {
	return &judge{world: w, peaks: map[string]int64{}, from: w.victim.nextWindow()}
}

// play plays a group.
func (j *judge) play(ctx context.Context, g group) {
	j.say("")
	j.say("%s", g.title)
	before, began := len(j.failed), time.Now()
	n, left := 0, 0
	for _, r := range g.rows {
		if ctx.Err() != nil {
			return
		}
		if r.long && j.short {
			left++
			continue
		}
		n++
		j.playRow(ctx, g, r)
	}
	j.judgeVictim(ctx)
	text := ""
	if left > 0 {
		text = fmt.Sprintf("; %d that take longer are left out", left)
	}
	j.say("%d attacks in %s, %d problems%s", n, time.Since(began).Round(100*time.Millisecond), len(j.failed)-before, text)
}

// playRow plays an attack, and notes what it did.
func (j *judge) playRow(ctx context.Context, g group, r row) {
	j.played++
	for _, l := range j.limits() {
		l.take()
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, rowTime)
	answer, err := r.do(limited, j.world)
	cancel()
	took := time.Since(began)
	problems := []error{err}
	if err == nil {
		problems = append(problems, r.must.judge(answer))
	}
	admission, err := j.victim.admission(ctx)
	problems = append(problems, err)
	var memory []string
	for _, l := range j.limits() {
		peak := l.take()
		j.peaks[l.name] = max(j.peaks[l.name], peak)
		problems = append(problems, l.problem(peak))
		l.began = l.pid() // a later row is judged by itself
		memory = append(memory, fmt.Sprintf("%s %d", l.name, peak>>20))
	}
	if err := errors.Join(problems...); err != nil {
		j.failed = append(j.failed, fmt.Errorf("%s: %s: %w", g.name, r.name, err))
		j.say("  FAILED  %s: %v", r.name, err)
	}
	j.say("  %-64s %6d ms, then a pod in %4d ms, MiB: %s", r.name, took.Milliseconds(), admission.Milliseconds(), strings.Join(memory, ", "))
}

// judgeVictim compares the windows that are over with the limit.
func (j *judge) judgeVictim(ctx context.Context) {
	v := j.victim
	for ; j.from.Add(v.window() + settle).Before(time.Now()); j.from = j.from.Add(v.window()) {
		j.windows++
		if err := windowProblem(j.from, v.admitted(j.from)); err != nil {
			j.failed = append(j.failed, err)
		}
	}
	if err := v.problem(ctx); err != nil {
		j.failed = append(j.failed, err)
	}
}

// windowProblem returns what is wrong with a window of the victim's that admitted n.
func windowProblem(start time.Time, n int) error {
	if n > victimLimit || float64(n) < leastServed*victimLimit {
		return fmt.Errorf("the victim's window of %s admitted %d, and its limit is %d", start.Format("15:04:05"), n, victimLimit)
	}
	return nil
}

// conclude waits for the window that is open, and prints what all attacks came to.
func (j *judge) conclude(ctx context.Context) {
	sleepUntil(ctx, j.from.Add(j.victim.window()+2*settle))
	j.judgeVictim(ctx)
	times := j.victim.times()
	slices.Sort(times)
	j.say("")
	j.say("%d attacks, %d problems", j.played, len(j.failed))
	j.say("victim: %d windows of %d; %d pods admitted, half of them in %d ms, the slowest in %d ms",
		j.windows, victimLimit, len(times), times[len(times)/2].Milliseconds(), times[len(times)-1].Milliseconds())
	for _, l := range j.limits() {
		j.say("%s: at most %d of %d MiB", l.name, j.peaks[l.name]>>20, l.limit>>20)
	}
}
