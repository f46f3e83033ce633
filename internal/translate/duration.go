package translate

import (
	"errors"
	"regexp"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
)

// gep2257 is the format of Gateway API durations. time.ParseDuration alone also
// takes signs, fractions and smaller units, which the core cannot count.
var gep2257 = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

var errDuration = errors.New("not a duration: write whole numbers of h, m, s and ms, such as 500ms, 10s or 1h30m")

// micros returns d exactly: the format has nothing shorter than a millisecond.
func micros(d v1alpha1.Duration) (limiter.Micros, error) {
	if !gep2257.MatchString(string(d)) {
		return 0, errDuration
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, errDuration
	}
	return limiter.Micros(parsed.Microseconds()), nil
}
