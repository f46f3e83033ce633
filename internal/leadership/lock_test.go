package leadership

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is a lock that takes a while to write.
type fakeLock struct {
	resourcelock.Interface
	took   func()
	err    error
	record resourcelock.LeaderElectionRecord
}

func (f *fakeLock) Identity() string { return "me" }

func (f *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &f.record, nil, nil
}

func (f *fakeLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	f.took()
	return f.err
}

func (f *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	f.took()
	return f.err
}

func TestHeld(t *testing.T) {
	const hold = 10 * time.Second
	me := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	nobody := resourcelock.LeaderElectionRecord{}

	type step struct {
		record *resourcelock.LeaderElectionRecord // nil: nothing is written
		took   time.Duration                      // by the write
		err    error
		wait   time.Duration // after it
		held   bool
	}
	tests := map[string][]step{
		"nobody leads before the first write":           {{held: false}},
		"a leader holds the lock it wrote":              {{record: &me, held: true}},
		"a leader holds until the renewal is used up":   {{record: &me, wait: hold - 1, held: true}, {wait: 1, held: false}},
		"a renewal counts from before it was sent":      {{record: &me, took: hold - 1, held: true}, {wait: 1, held: false}},
		"a renewal that failed does not count":          {{record: &me, wait: hold - 1, held: true}, {record: &me, err: errors.New("timeout"), wait: 1, held: false}},
		"a renewal prolongs":                            {{record: &me, wait: hold - 1, held: true}, {record: &me, wait: hold - 1, held: true}},
		"who releases does not hold":                    {{record: &me, held: true}, {record: &nobody, held: false}},
		"a release that failed may have arrived":        {{record: &me, held: true}, {record: &nobody, err: errors.New("timeout"), held: false}},
		"who was suspended past the renewal leads not":  {{record: &me, wait: time.Hour, held: false}},
		"a reply that took longer than it holds is old": {{record: &me, took: hold, held: false}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Minute
			var fake fakeLock
			lock := newLock(&fake, hold, func() time.Duration { return now })
			for i, s := range steps {
				fake.err, fake.took = s.err, func() { now += s.took }
				if s.record != nil {
					if err := lock.Update(t.Context(), *s.record); !errors.Is(err, s.err) {
						t.Fatalf("step %d: error %v, want %v", i, err, s.err)
					}
				}
				now += s.wait
				if got := lock.Held(); got != s.held {
					t.Errorf("step %d: held is %v, want %v", i, got, s.held)
				}
			}
		})
	}
}

// The timeout of leader election would end every watch of the process.
func TestNewLeavesTheConfigAsItIs(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := New(config, "weir-system", "weir-controller", "me", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "" {
		t.Errorf("the config now has timeout %s and user agent %q", config.Timeout, config.UserAgent)
	}
}

func TestSinceBootAdvances(t *testing.T) {
	first := sinceBoot()
	if second := sinceBoot(); first <= 0 || second < first {
		t.Errorf("time since boot went from %s to %s", first, second)
	}
}

func TestPredecessor(t *testing.T) {
	renewed := time.Unix(1_800_000_000, 0)
	tests := map[string]struct {
		record resourcelock.LeaderElectionRecord
		want   time.Time
	}{
		"nobody held it":              {},
		"another held it":             {record: resourcelock.LeaderElectionRecord{HolderIdentity: "other", RenewTime: metav1.NewTime(renewed)}, want: renewed.Add(time.Second)},
		"another released it":         {record: resourcelock.LeaderElectionRecord{RenewTime: metav1.NewTime(renewed)}, want: renewed},
		"this process has renewed it": {record: resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.NewTime(renewed)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lock := newLock(&fakeLock{record: tc.record}, time.Second, sinceBoot)
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := lock.Predecessor(); !got.Equal(tc.want) {
				t.Errorf("predecessor = %v, want %v", got, tc.want)
			}
		})
	}
}
