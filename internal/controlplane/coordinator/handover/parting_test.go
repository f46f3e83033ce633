package handover

import (
	"slices"
	"testing"
)

// TestAGoodbyeComesBehindAnswers that were under way as it was to be said: what they grant would be
// lost.
func TestAGoodbyeComesBehindAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(p *Parting, say func(string) func())
		want []string
	}{
		"none is under way": {func(p *Parting, say func(string) func()) {
			p.Begin(say("goodbye"))
			if p.Answer() {
				t.Error("an answer begins that would be lost")
			}
			p.Insist()
		}, []string{"goodbye"}},
		"two are under way": {func(p *Parting, say func(string) func()) {
			p.Answer()
			p.Answer()
			p.Begin(say("goodbye"))
			for range 2 {
				say("answer")()
				p.Answered()
			}
		}, []string{"answer", "answer", "goodbye"}},
		"one takes too long": {func(p *Parting, say func(string) func()) {
			p.Answer()
			p.Begin(say("goodbye"))
			p.Insist()
			say("answer")()
			p.Answered()
		}, []string{"goodbye", "answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, heard := new(Parting), []string(nil)
			if p.Begun() {
				t.Error("it parts as it begins")
			}
			tc.do(p, func(what string) func() { return func() { heard = append(heard, what) } })
			if !slices.Equal(heard, tc.want) || !p.Begun() {
				t.Errorf("the holder hears %q, want %q", heard, tc.want)
			}
		})
	}
}
