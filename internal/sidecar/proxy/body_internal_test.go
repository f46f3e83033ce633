package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A source is a body that says whether it was closed.
type source struct {
	io.Reader
	closed bool
}

func (s *source) Close() error {
	s.closed = true
	return nil
}

func TestABodyIsSentAgainAsLongAsAllOfItIsKept(t *testing.T) {
	whole := strings.Repeat("x", keptBytes-1) + strings.Repeat("y", keptBytes)
	for name, tc := range map[string]struct {
		size, read int
		again      bool
	}{
		"of which nothing was read":            {size: 5, again: true},
		"of which all was read":                {size: 5, read: 5, again: true},
		"of which as much was read as is kept": {size: 2*keptBytes - 1, read: keptBytes, again: true},
		"of which more was read":               {size: 2*keptBytes - 1, read: keptBytes + 1},
	} {
		t.Run(name, func(t *testing.T) {
			from := &source{Reader: strings.NewReader(whole[:tc.size])}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://app/", from)
			if err != nil {
				t.Fatal(err)
			}
			sendAgain(r, r, false)
			for range 2 { // it may take several connections
				if _, err := io.ReadFull(r.Body, make([]byte, tc.read)); err != nil {
					t.Fatal(err)
				}
				_ = r.Body.Close()
				again, err := r.GetBody()
				if from.closed == tc.again {
					t.Errorf("closed is %t", from.closed)
				}
				if !tc.again {
					if !errors.Is(err, errLost) {
						t.Errorf("got %v, want that it is lost", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r.Body = again
			}
			got, err := io.ReadAll(r.Body)
			if err != nil || string(got) != whole[:tc.size] {
				t.Errorf("%d bytes, %v, want the %d of the whole", len(got), err, tc.size)
			}
		})
	}
}
