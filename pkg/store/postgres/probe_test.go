package postgres

import (
	"strings"
	"testing"
)

// TestReasonsRepeatNoServer has a server send text where a value of Postgres should be.
func TestReasonsRepeatNoServer(t *testing.T) {
	f := facts{off: map[string]string{"fsync": "TOPSECRET", "synchronous_commit": "local"}}
	if got := f.losses(); strings.Contains(got, "TOPSECRET") || !strings.Contains(got, "fsync = on, synchronous_commit = on (it is local)") {
		t.Errorf("got %s", got)
	}
}
