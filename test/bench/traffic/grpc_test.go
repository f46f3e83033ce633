package traffic

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/test/bench/app"
)

var small = []byte(app.Admitted)

// kinds are calls of all kinds.
var kinds = map[string]Kind{
	"unary":               {Path: "/x", Message: small, Sends: 1, Counts: 1},
	"unary, 64 KiB":       {Path: app.Large, Message: app.Message(app.LargeBytes), Sends: 1, Counts: 1},
	"from the client":     {Path: "/x", Message: small, Sends: app.Messages, Counts: app.Messages},
	"from the server":     {Path: app.Down, Message: small, Sends: 1, Counts: app.Messages},
	"both ways":           {Path: app.Echo, Message: small, Counts: 1},
	"both ways, 64 KiB":   {Path: app.Echo, Message: app.Message(app.LargeBytes), Counts: 1},
	"both ways, no bytes": {Path: app.Echo, Message: app.Message(0), Counts: 1},
}

// TestCallsOfAllKindsAreAnswered, also where the server takes less than a message at a time.
func TestCallsOfAllKindsAreAnswered(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			address, asked := serve(t, 65535)
			all, err := DialGRPC(address, 2, 3, kind)
			if err != nil {
				t.Fatal(err)
			}
			defer all.Close()
			if asked.Load() != 6 {
				t.Errorf("%d calls when the connections were opened", asked.Load())
			}
			for _, until := range []time.Time{{}, time.Now().Add(20 * time.Millisecond)} {
				before := asked.Load()
				answered, err := all.Closed(until)
				calls := int(asked.Load() - before)
				if want := calls * kind.Counts; err != nil || calls < 6 || answered != want && !kind.streams() || answered < want {
					t.Errorf("%d calls: %d messages, %v", calls, answered, err)
				}
			}
		})
	}
}

// TestAnOpenLoopOfCallsSendsWhatIsDue, and a closed one may follow.
func TestAnOpenLoopOfCallsSendsWhatIsDue(t *testing.T) {
	for name, kind := range kinds {
		for _, n := range []int{1, 3, 25} {
			address, asked := serve(t, 65535)
			all, err := DialGRPC(address, n, 2, kind)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				before := asked.Load()
				took, err := all.Open(1000, 20*time.Millisecond)
				calls := asked.Load() - before
				if err != nil || len(took) != 20 || !slices.IsSorted(took) || took[0] <= 0 || !kind.streams() && calls != 20 || calls > 20 {
					t.Errorf("%s over %d connections: %d calls took %v, %v", name, n, calls, took, err)
				}
			}
			if answered, err := all.Closed(time.Time{}); err != nil || answered != 2*n*kind.Counts {
				t.Errorf("%s over %d connections: a closed loop behind it counts %d, %v", name, n, answered, err)
			}
			all.Close()
		}
	}
}

// TestACallThatIsNotAnsweredEndsALoop.
func TestACallThatIsNotAnsweredEndsALoop(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   Kind
		handle http.HandlerFunc
		http1  bool
		want   string
	}{
		"a call":           {kinds["unary"], func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "reset a call"},
		"a stream":         {kinds["both ways"], func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "reset a call"},
		"a stream's end":   {kinds["both ways"], func(http.ResponseWriter, *http.Request) {}, false, "ended a stream"},
		"not this version": {kinds["unary"], app.Handle, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(tc.handle)
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetHTTP1(tc.http1)
			s.Config.Protocols.SetUnencryptedHTTP2(!tc.http1)
			s.Start()
			defer s.Close()
			all, err := DialGRPC(s.Listener.Addr().String(), 1, 1, tc.kind)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v", all, err)
			}
		})
	}
}

// TestAnAskerIsAnswered, and draws what it asks.
func TestAnAskerIsAnswered(t *testing.T) {
	address, asked := serve(t, 0)
	a, err := NewAsker(address)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	messages := [][]byte{Message("domain", "key", "value")}
	left, got := 10, 0
	err = a.Keep(4, time.Time{}, time.Now().Add(time.Hour), messages, func() int {
		if left--; left < 0 {
			return -1
		}
		return 0
	}, func(answer Answer) {
		if got++; !answer.Admitted || answer.Took <= 0 {
			t.Errorf("answered %+v", answer)
		}
	})
	if err != nil || got != 10 || asked.Load() != 10 {
		t.Errorf("%d of %d calls were answered, %v", got, asked.Load(), err)
	}
	if a.Address() != address {
		t.Errorf("it is connected to %s", a.Address())
	}
}
