package coordinator

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxTokens bounds how many answers of a kind are remembered.
const maxTokens = 8192

// answers are what reviews found, by the token's digest. Those of tokens that were
// accepted and those of tokens that were refused have room of their own: bad tokens of one
// sender do not cause another's good one to be reviewed again.
type answers struct {
	mu       sync.Mutex
	accepted map[[sha256.Size]byte]answer
	refused  map[[sha256.Size]byte]answer
}

type answer struct {
	id    Identity
	err   error // nil for a token that was accepted
	until time.Time
}

func newAnswers() *answers {
	return &answers{accepted: map[[sha256.Size]byte]answer{}, refused: map[[sha256.Size]byte]answer{}}
}

func (a *answers) of(digest [sha256.Size]byte, now time.Time) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.accepted[digest]
	if !ok {
		known, ok = a.refused[digest]
	}
	return known, ok && now.Before(known.until)
}

func (a *answers) add(digest [sha256.Size]byte, given answer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.accepted, digest) // a token may have expired since
	delete(a.refused, digest)
	kind := a.accepted
	if given.err != nil {
		kind = a.refused
	}
	if len(kind) >= maxTokens {
		makeRoom(kind, now)
	}
	kind[digest] = given
}

// makeRoom drops what is out of date or, when nothing is, whatever comes first.
func makeRoom(of map[[sha256.Size]byte]answer, now time.Time) {
	for digest, a := range of {
		if !now.Before(a.until) {
			delete(of, digest)
		}
	}
	for digest := range of {
		if len(of) < maxTokens {
			return
		}
		delete(of, digest)
	}
}
