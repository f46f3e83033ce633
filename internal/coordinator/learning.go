package coordinator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// learningFrom reads what a holder says of a store that cannot know what it granted
// before. It is zero when the store refuses nothing for that.
func learningFrom(in *fleetpb.LimitReport, now time.Time) (Learning, error) {
	reason, lasts := limiter.Reason(in.GetLearningReason()), in.GetLearningMicros()
	switch {
	case in.GetLearningReason() == 0 && lasts == 0:
		return Learning{}, nil
	case in.GetLearningReason() != int32(reason) || reason != limiter.Amnesia && reason != limiter.ClockBehind:
		return Learning{}, fmt.Errorf("learning_reason is %d, which is neither Amnesia (%d) nor ClockBehind (%d)", in.GetLearningReason(), limiter.Amnesia, limiter.ClockBehind)
	case lasts < 1 || lasts > 2*int64(limiter.MaxWindow):
		return Learning{}, fmt.Errorf("learning_micros is %d, outside 1 to %d", lasts, 2*int64(limiter.MaxWindow))
	}
	return Learning{Since: now, Until: now.Add(time.Duration(lasts) * time.Microsecond), Reason: reason}, nil
}

// setLearning keeps which limits the holder says that their store grants nothing of. It
// returns the policies for which that begins, ends, or has another reason.
func (s *session) setLearning(said map[limitName]Learning) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	for name := range s.learning {
		if s.serves.limits[name] == nil {
			delete(s.learning, name)
		}
	}
	for name, now := range said {
		before, was := s.learning[name]
		if before.Reason != now.Reason {
			changed = append(changed, name.policy)
		} else if was {
			now.Since = before.Since
		}
		if now.Reason == 0 {
			delete(s.learning, name)
		} else {
			s.learning[name] = now
		}
	}
	return changed
}

// observeLearning adds what the holder says of the policy's limits: what it first said
// first and lasts longest.
func (s *session) observeLearning(policy types.NamespacedName, into map[string]Learning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for name, said := range s.learning {
		if name.policy != policy || !now.Before(said.Until) {
			continue
		}
		known, ok := into[name.limit]
		if ok && known.Since.Before(said.Since) {
			said.Since = known.Since
		}
		if ok && known.Until.After(said.Until) {
			said.Until, said.Reason = known.Until, known.Reason
		}
		into[name.limit] = said
	}
}
