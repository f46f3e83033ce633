package translate

import (
	"math"
	"math/bits"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const hour = 3600 * limiter.Second

// weekOffset makes windows of seven days begin on Mondays: 1970-01-01 was a
// Thursday.
const weekOffset = 3 * limiter.Day

// rates translates the rates of the limit, or of one of its overrides, and checks
// them against the limit's algorithm.
func (t *translator) rates(path *field.Path, l *policy.Limit, rates []v1alpha1.Rate, offset limiter.Micros) []limiter.Rate {
	before := len(t.errs)
	var out []limiter.Rate
	for i, r := range rates {
		translated := limiter.Rate{Limit: r.Limit, Burst: or(r.Burst, 0), Offset: offset}
		switch r.Cadence {
		case v1alpha1.Hourly:
			translated.Window = hour
		case v1alpha1.Daily:
			translated.Window = limiter.Day
		case v1alpha1.Weekly:
			translated.Window, translated.Offset = 7*limiter.Day, offset+weekOffset
		case v1alpha1.Monthly:
			translated.Window, translated.Monthly = limiter.MaxWindow, true
		default:
			translated.Window = t.micros(path.Index(i).Child("window"), string(r.Window))
		}
		out = append(out, translated)
	}
	if len(t.errs) > before {
		return out
	}
	params := l.Params(new(policy.Policy))
	params.Rates = out
	if err := params.Validate(); err != nil {
		t.invalid(path, field.OmitValueType{}, err.Error())
	}
	return out
}

// offset reads an offset from UTC such as +02:00.
func (t *translator) offset(path *field.Path, s string) limiter.Micros {
	if s == "" {
		return 0
	}
	if len(s) == len("+02:00") {
		hours, hoursErr := strconv.ParseUint(s[1:3], 10, 8)
		minutes, minutesErr := strconv.ParseUint(s[4:], 10, 8)
		east := limiter.Micros(hours)*hour + limiter.Micros(minutes)*60*limiter.Second
		if hoursErr == nil && minutesErr == nil && minutes < 60 && east <= 14*hour && s[3] == ':' {
			switch s[0] {
			case '+':
				return east
			case '-':
				return -east
			}
		}
	}
	t.invalid(path, s, "not an offset from UTC: write a sign, two digits for hours, a colon and two for minutes, from -14:00 to +14:00, such as +02:00")
	return 0
}

func burst(r limiter.Rate) int64 {
	if r.Burst == 0 {
		return r.Limit
	}
	return r.Burst
}

// scale returns amount·part/whole, rounded down, at most the largest int64.
func scale[T, U ~int64](amount T, part, whole U) T {
	high, low := bits.Mul64(uint64(amount), uint64(part))
	if high >= uint64(whole) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return T(min(quotient, math.MaxInt64))
}
