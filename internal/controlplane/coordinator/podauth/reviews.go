package podauth

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

// Bounds of the reviews for tokens that claim to be of one pod.
const (
	reviewEvery = time.Second // on the long run
	reviewBurst = 5           // at once after a pause
	manyPods    = 1024        // below which no memory is worth saving
)

// reviewTurns make a pod wait for itself alone. Tokens that claim to be of one pod are
// reviewed one after the other and not too often, so that a forger takes no reviews from
// other pods.
type reviewTurns struct {
	mu    sync.Mutex
	byPod map[string]*reviewTurn // by claimed UID
	clear int                    // how many there have to be before the idle ones are dropped
}

type reviewTurn struct {
	busy bool
	free time.Time // when the burst is whole again (the generic cell rate algorithm, ITU-T I.371)
}

func newReviewTurns() *reviewTurns {
	return &reviewTurns{byPod: map[string]*reviewTurn{}, clear: manyPods}
}

// begin reports whether a token of the pod may be reviewed now, and then ends with end.
func (r *reviewTurns) begin(podUID string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn := r.byPod[podUID]
	if turn == nil {
		r.makeRoom(now)
		turn = &reviewTurn{}
		r.byPod[podUID] = turn
	}
	if turn.busy || turn.free.Sub(now) > (reviewBurst-1)*reviewEvery {
		return false
	}
	if turn.free.Before(now) {
		turn.free = now
	}
	turn.busy, turn.free = true, turn.free.Add(reviewEvery)
	return true
}

func (r *reviewTurns) end(podUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byPod[podUID].busy = false
}

// makeRoom drops what is as good as new.
func (r *reviewTurns) makeRoom(now time.Time) {
	if len(r.byPod) < r.clear {
		return
	}
	for uid, turn := range r.byPod {
		if !turn.busy && !turn.free.After(now) {
			delete(r.byPod, uid)
		}
	}
	r.clear = max(manyPods, 2*len(r.byPod))
}
