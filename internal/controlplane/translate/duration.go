package translate

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// gep2257 is the format of Gateway API durations. time.ParseDuration alone also
// takes signs, fractions and smaller units, which the core cannot count.
var gep2257 = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

var errDuration = errors.New("not a duration: write whole numbers of h, m, s and ms, such as 500ms, 10s or 1h30m")

// micros returns d exactly: the format has nothing shorter than a millisecond.
func micros(d string) (limiter.Micros, error) {
	if !gep2257.MatchString(d) {
		return 0, errDuration
	}
	parsed, err := time.ParseDuration(d)
	if err != nil {
		return 0, errDuration
	}
	return limiter.Micros(parsed.Microseconds()), nil
}

// text returns a duration as a person would write it.
func text(d limiter.Micros) string {
	s := (time.Duration(d) * time.Microsecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
