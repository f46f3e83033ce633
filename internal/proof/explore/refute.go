package explore

import "testing"

// Hold searches m, calls visit as Search does, and fails when a history breaks what m checks.
func Hold[S, A any](t *testing.T, m Model[S, A], visit func(S)) Report[S, A] {
	t.Helper()
	r, err := Search(m, visit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states, %d transitions, depth %d", r.States, r.Transitions, r.Depth)
	if r.Counterexample != nil {
		t.Fatalf("the promise is broken:\n%v", r.Counterexample)
	}
	return r
}

// Refute returns how many steps a shortest history has that breaks what m checks, and prints it.
// It fails when no history does.
func Refute[S, A any](t *testing.T, m Model[S, A]) int {
	t.Helper()
	r, err := Search(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Counterexample == nil {
		t.Fatalf("no history of %d states breaks the promise", r.States)
	}
	t.Logf("a shortest history:\n%v", r.Counterexample)
	return len(r.Counterexample.Trace)
}

// RefuteIn fails unless a shortest history that breaks what m checks has that many steps.
func RefuteIn[S, A any](t *testing.T, m Model[S, A], steps int) {
	t.Helper()
	if got := Refute(t, m); got != steps {
		t.Errorf("the shortest history has %d steps, want %d", got, steps)
	}
}
