package certs

import (
	"bytes"
	"testing"
)

// TestReplacingTheAuthority is the procedure of docs/operations.md: a Secret that is deleted
// while no controller runs is followed by a new authority, which the webhooks then trust.
// One that is deleted beside a running controller is followed by the old authority.
func TestReplacingTheAuthority(t *testing.T) {
	c := cluster().Build()
	before := New(c, options())
	mustReconcile(t, before)
	old := before.CABundle()

	remove := func() {
		if err := c.Delete(t.Context(), readSecret(t, c)); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	mustReconcile(t, before)
	if !bytes.Equal(before.CABundle(), old) {
		t.Error("a running controller gave up its authority, which its sidecars trust")
	}

	remove()
	after := New(c, options())
	mustReconcile(t, after)
	if bytes.Equal(after.CABundle(), old) {
		t.Error("the authority is the old one")
	}
	requirePublished(t, c, after.CABundle())
}
