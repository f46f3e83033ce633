package hub

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

const (
	keyFreshFor = 5 * time.Second // a token that was revoked is accepted for that long
	keyReadPace = time.Second     // between two readings of a Secret for a token that is not in it
	keyKeptFor  = 5 * time.Minute // a token stands that long while the Secret cannot be read
	keyTimeout  = 3 * time.Second // of one reading
)

// A keyring remembers the tokens of members for a moment. It is safe for concurrent
// use.
type keyring struct {
	read    func(ctx context.Context, member string) (token string, err error)
	clock   clock.PassiveClock
	reading singleflight.Group

	mu   sync.Mutex
	keys map[string]key // by member: only names that the authority has signed
}

type key struct {
	token string
	at    time.Time // when it was read
}

func newKeyring(read func(context.Context, string) (string, error), c clock.PassiveClock) *keyring {
	return &keyring{read: read, clock: c, keys: map[string]key{}}
}

// accepts reports whether token is the member's present one. The error says that this
// could not be found out. It blocks while the Secret is read, for a few seconds at most.
func (k *keyring) accepts(ctx context.Context, member, token string) (bool, error) {
	known, age := k.known(member)
	if same := equal(known.token, token); same && age < keyFreshFor || !same && age < keyReadPace {
		return same, nil
	}
	read, err, _ := k.reading.Do(member, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		at := k.clock.Now()
		token, err := k.read(ctx, member)
		if err == nil {
			k.keep(member, key{token, at})
		}
		return token, err
	})
	if err != nil {
		if equal(known.token, token) && age < keyKeptFor {
			return true, nil
		}
		return false, err
	}
	present, _ := read.(string)
	return equal(present, token), nil
}

func (k *keyring) known(member string) (key, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.keys[member]
	if !ok {
		return key{}, keyKeptFor
	}
	return known, k.clock.Since(known.at)
}

func (k *keyring) keep(member string, read key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[member] = read
}

// equal compares in constant time. No token equals none.
func equal(token, shown string) bool {
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(shown)) == 1
}
