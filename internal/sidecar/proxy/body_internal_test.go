package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// reading is a read that goes on, and notes when it is ended.
type reading struct{ ended []time.Time }

func (r *reading) interrupt() { r.ended = append(r.ended, time.Now()) }

// TestTheRestOfABodyHasAMomentToCome when it would be sent over another connection.
func TestTheRestOfABodyHasAMomentToCome(t *testing.T) {
	for name, tc := range map[string]struct {
		again, lost bool
		then        func(*body)
		ends        bool
		after       time.Duration
	}{
		"of a body that is sent once":               {ends: true},
		"of a body of which more was sent":          {again: true, lost: true, ends: true},
		"that does not come":                        {again: true, ends: true, after: lastRead},
		"that comes":                                {again: true, then: func(b *body) { b.over.Store(true) }},
		"of a body that another connection carries": {again: true, then: (*body).stay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r reading
				b := &body{reads: &r, ended: func() bool { return false }}
				b.again.Store(tc.again)
				b.lost.Store(tc.lost)
				begin := time.Now()
				b.abandon()
				if tc.then != nil {
					tc.then(b)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if len(r.ended) > 0 != tc.ends || tc.ends && r.ended[0].Sub(begin) != tc.after || b.left.Load() != tc.ends {
					t.Errorf("the read is ended at %v, want %v after %v", r.ended, tc.after, begin)
				}
			})
		})
	}
}
