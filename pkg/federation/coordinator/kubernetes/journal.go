package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Journal keeps one record of each budget where it survives the process: in the API
// server. Its methods are safe for concurrent use and block until the answer is
// there or ctx is done.
type Journal interface {
	// Load returns the record of the budget of that id and its version. The error
	// wraps ErrNotFound when there is none.
	Load(ctx context.Context, id string) (Record, string, error)

	// Save replaces the record if it still has that version, and returns the new one; it
	// creates the record when version is "". The error is a *ConflictError when there
	// is another version or none, then nothing was written. After any other error the
	// record may have been written or may still be.
	Save(ctx context.Context, id string, r Record, version string) (string, error)
}

// Births are which budgets were ever kept, in this cluster or by it as a member, where
// that survives their records. Their methods are safe for concurrent use and block until
// the answer is there or ctx is done.
type Births interface {
	// Known reports whether units of the budget of that id may have been granted before,
	// of windows of that length that may still be open.
	Known(ctx context.Context, id string, window limiter.Micros) (bool, error)

	// Enter notes that units of it may be granted from now on, of windows up to that
	// length.
	Enter(ctx context.Context, id string, window limiter.Micros) error
}

// unrecorded are the births of a coordinator that keeps none: any budget may be an old one.
type unrecorded struct{}

func (unrecorded) Known(context.Context, string, limiter.Micros) (bool, error) { return true, nil }

func (unrecorded) Enter(context.Context, string, limiter.Micros) error { return nil }

// ErrNotFound is what Load's error wraps when there is no record.
var ErrNotFound = errors.New("no record")

// A ConflictError says that somebody else wrote, created or deleted the record.
type ConflictError struct {
	ID    string // of the budget
	Cause error
}

// Error names the budget and the cause.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("the record of budget %s is not what was read: %v", e.ID, e.Cause)
}

// Unwrap returns the cause.
func (e *ConflictError) Unwrap() error { return e.Cause }

// A Record is what has to be known of a budget after a crash.
type Record struct {
	Window limiter.Micros `json:"window"` // length of the windows
	Index  int64          `json:"index"`  // of the latest window that units were set aside for
	Limit  int64          `json:"limit"`  // of that window
	// Reserved is how many units of the window were set aside, for all memories
	// altogether.
	Reserved int64 `json:"reserved"`
	// Slices are what members were allowed to use without asking, of any window, until they
	// give it up.
	Slices []Slice `json:"slices,omitempty"`
	// Keys are what was set aside of each value, for a budget with a key; nil for one without.
	Keys   *keys.Aside     `json:"keys,omitempty"`
	Latest limiter.Instant `json:"latest"` // newest instant served

	// Since is when the budget was first kept here, without a break: windows that are
	// older grant nothing, because another hub may have kept it. 0: none has.
	Since  limiter.Instant `json:"since"`
	Term   int64           `json:"term"`   // of the memory that wrote the record
	Writer string          `json:"writer"` // its name, which no other has
}

// A Slice is what one member may be using of each window without asking, at most.
type Slice struct {
	Member string `json:"member"`
	Units  int64  `json:"units"`
}

// Ceased returns the record of a budget that is not kept here any more, so that another
// hub may keep it from now on. A coordinator that keeps it in memory finds out that it
// was overtaken. If one keeps it here again, its memory begins then, but for the slices.
func (r Record) Ceased() Record {
	r.Since, r.Writer = limiter.Instant(largest), "nobody"
	return r
}

// Kept reports whether the record's budget has not ceased to be kept.
func (r Record) Kept() bool { return int64(r.Since) < largest }

// Ends returns the end of the window that units were set aside for.
func (r Record) Ends() limiter.Instant {
	return limiter.Instant((r.Index + 1) * int64(r.Window))
}

// Validate reports a record that no coordinator wrote.
func (r Record) Validate() error {
	switch {
	case r.Window < limiter.MinWindow || r.Window > limiter.MaxWindow:
		return fmt.Errorf("window of %dµs, must be %d to %d", r.Window, limiter.MinWindow, limiter.MaxWindow)
	case r.Index < 0 || r.Index > largest/int64(r.Window):
		return fmt.Errorf("index %d", r.Index)
	case r.Limit < 1 || r.Limit > limiter.MaxLimit:
		return fmt.Errorf("limit %d, must be 1 to %d", r.Limit, limiter.MaxLimit)
	case r.Reserved < 0 || r.Reserved > limiter.MaxLimit:
		return fmt.Errorf("reserved %d, must be 0 to %d", r.Reserved, limiter.MaxLimit)
	case min(r.Latest, r.Since) < 0, int64(max(r.Latest, r.Since)) > largest:
		return fmt.Errorf("latest instant %d, since %d", r.Latest, r.Since)
	case r.Term < 1 || r.Term >= largest:
		return fmt.Errorf("term %d", r.Term)
	case r.Writer == "":
		return errors.New("no writer")
	case r.Keys != nil:
		if err := r.Keys.Validate(); err != nil {
			return err
		}
	}
	for i, s := range r.Slices {
		if s.Units < 1 || s.Units > limiter.MaxLimit || i > 0 && r.Slices[i-1].Member >= s.Member {
			return fmt.Errorf("slice %d of member %q after %q", s.Units, s.Member, r.Slices[max(0, i-1)].Member)
		}
	}
	return nil
}

// largest bounds every number: JSON readers may take them for floats.
const largest = int64(1) << 53

func (s Slice) compare(member string) int { return cmp.Compare(s.Member, member) }
