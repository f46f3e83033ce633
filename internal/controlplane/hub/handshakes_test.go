package hub

import (
	"testing"
)

// TestHandshakesAreCounted connects again and again.
func TestHandshakesAreCounted(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	secret := w.secret(t, "b")
	var refused int
	for range maxHandshakes + 5 {
		client, err := new(Connections).Open(w.address, secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
			requireUnavailable(t, err)
			refused++
		}
		client.Close()
	}
	if refused == 0 {
		t.Error("a member may connect as often as it likes")
	}
	if _, err := w.open(t, w.secret(t, "c")).Apply(t.Context(), budgetID, p, lease("c", 1, 5)); err != nil {
		t.Errorf("another member: %v", err)
	}
	w.clock.Step(handshakeSpan)
	if _, err := w.open(t, secret).Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("later: %v", err)
	}
}
