package journal

import "github.com/weir-dev/weir/pkg/limiter"

const (
	// forfeitParts is the inverse of the part of a limit that crashes may forfeit, besides
	// what somebody was waiting for.
	forfeitParts = 16
	// paces is for how many writes ahead a block lasts: it is asked for at half.
	paces = 4
	// hasty is how much is set aside ahead at least for a counter that had to wait.
	hasty = 4
)

// allowance returns how much is set aside at most, ahead of any demand, of a limit of
// which this much was forfeited. It halves what may still be, so that crashes in a row
// forfeit forfeitParts in all.
func allowance(limit, lost int64) int64 {
	if lost == 0 {
		return max(1, limit/forfeitParts/2)
	}
	return max(0, (limit/forfeitParts-lost)/2)
}

// block returns how much is set aside of a counter: what waits, and as much as was asked
// for in the time of some writes.
func (a *Account) block(limit int64, now limiter.Instant, pace limiter.Micros) int64 {
	left := a.remaining
	elapsed := pace
	if a.entered > 0 {
		elapsed = max(pace, now.Sub(a.entered))
	}
	demand := min(a.asked/int64((elapsed+pace-1)/pace), limit/paces)
	ahead := min(max(paces*demand, 1), allowance(limit, a.lost), max(left/forfeitParts, 1))
	if a.waiting > 0 && a.lost == 0 {
		ahead = max(ahead, min(hasty, left/2), min(a.waiting, left/forfeitParts*2)) // one at a time is too slow
	}
	return plus(min(a.waiting, max(left, 1)), ahead)
}
