package coordinator

import (
	"sync"
	"time"
)

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
	turn.busy, turn.free = true, latest(turn.free, now).Add(reviewEvery)
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
