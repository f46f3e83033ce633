// Package progress prints the current step for a waiting user, how long it usually
// takes and how long it took.
package progress

import (
	"fmt"
	"io"
	"time"
)

// Log writes one line for every event. The zero value is silent.
type Log struct{ W io.Writer }

// Say writes a line.
func (l Log) Say(format string, args ...any) {
	if l.W != nil {
		fmt.Fprintf(l.W, "kind: "+format+"\n", args...)
	}
}

// Do prints the step that begins and how long it usually takes, runs it, and prints
// how long it took. It wraps the step's error with the name of the step.
func (l Log) Do(what, usual string, step func() error) error {
	l.Say("%s (%s)", what, usual)
	began := time.Now()
	if err := step(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l.Say("%s: done in %s", what, time.Since(began).Round(100*time.Millisecond))
	return nil
}
