package rls

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/quota"
)

// appendAnswer appends envoy.service.ratelimit.v3.RateLimitResponse, as proto writes it. Its header
// fields are those of the state that binds most.
func appendAnswer(b []byte, r enforce.Ruling) []byte {
	b = appendNumber(b, 1, code(r.Allowed))
	var binding enforce.QuotaState
	var scratch [128]byte
	for i := range r.States {
		b = appendMessage(b, 2, appendStatus(scratch[:0], &r.States[i]))
		if r.States[i].Binds(binding) {
			binding = r.States[i]
		}
	}
	for _, f := range quota.Fields(binding) {
		b = appendMessage(b, 3, appendText(appendText(scratch[:0], 1, f.Name), 2, f.Value))
	}
	return b
}

// appendStatus appends the status of a descriptor. A limit that did not judge by its counter does
// not say what is left.
func appendStatus(b []byte, s *enforce.QuotaState) []byte {
	b = appendNumber(b, 1, code(s.Refusal == nil))
	if s.Limit == nil || s.Decision.Limit == 0 {
		return b
	}
	var scratch [96]byte
	b = appendMessage(b, 2, appendCurrentLimit(scratch[:0], s))
	b = appendNumber(b, 3, saturated(s.Decision.Remaining))
	if reset := max(s.Decision.ResetAfter, s.Decision.RetryAfter); reset > 0 {
		b = appendMessage(b, 4, appendDuration(scratch[:0], reset))
	}
	return b
}

// appendCurrentLimit appends the rate that binds, in the longest unit that its window is a multiple
// of. The unit of a window that is not a whole number of seconds is not known.
func appendCurrentLimit(b []byte, s *enforce.QuotaState) []byte {
	rate := quota.BindingRate(*s)
	unit, multiplier := unitOf(rate)
	b = appendNumber(b, 1, saturated(rate.Limit))
	b = appendNumber(b, 2, unit)
	b = appendText(b, 3, s.Limit.Name)
	if multiplier > 0 {
		var scratch [8]byte
		b = appendMessage(b, 4, appendNumber(scratch[:0], 1, uint64(multiplier)))
	}
	return b
}

func appendDuration(b []byte, d time.Duration) []byte {
	return appendNumber(appendNumber(b, 1, uint64(d/time.Second)), 2, uint64(d%time.Second))
}

// appendNumber appends a field unless it is 0, which no field is sent for.
func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func code(allowed bool) uint64 {
	if allowed {
		return okCode
	}
	return overLimitCode
}

// saturated returns n, or the most that the protocol can say.
func saturated(n int64) uint64 { return uint64(min(max(n, 0), math.MaxUint32)) }
