package suite

import (
	"errors"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

// WantUnavailable fails the test unless err is the one that failure actions act on, and wraps the causes.
func WantUnavailable(t testing.TB, err error, causes ...error) {
	t.Helper()
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
		t.Errorf("the error is %v, want a store.UnavailableError", err)
	}
	for _, cause := range causes {
		if !errors.Is(err, cause) {
			t.Errorf("the error is %v, which hides %v", err, cause)
		}
	}
}
