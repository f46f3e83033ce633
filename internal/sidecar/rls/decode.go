package rls

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/pkg/policy"
)

// Calls are read off the wire here, and not by proto. Envoy sends the bytes of a header as they
// are, so a client chooses them, and proto refuses what is not UTF-8: a client could thus escape
// every limit of an Envoy that passes undecided requests. A key is bytes to all that count it, as
// that of a request is, so that two keys stay two: whatever replaced the bytes could be sent in
// their place. Descriptors and entries beyond the bounds are counted and not kept.

// A field is one of a message. Fields of the other wire types are of no use here.
type field struct {
	number  protowire.Number
	kind    protowire.Type
	value   uint64 // of VarintType
	content []byte // of BytesType
}

var errNumber = errors.New("a field has a number that is too large")

// next returns the first field of a message, and the rest.
func next(b []byte) (f field, rest []byte, err error) {
	number, kind, n := protowire.ConsumeTag(b)
	switch {
	case n < 0:
		return field{}, nil, protowire.ParseError(n)
	case number > protowire.MaxValidNumber:
		return field{}, nil, errNumber
	}
	f.number, f.kind, rest = number, kind, b[n:]
	switch kind {
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(rest)
	case protowire.BytesType:
		f.content, n = protowire.ConsumeBytes(rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, rest)
	}
	if n < 0 {
		return field{}, nil, protowire.ParseError(n)
	}
	return f, rest[n:], nil
}

// each calls use for each field of a message. It is merged into what is there, as proto does.
func each(b []byte, use func(field) error) error {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err == nil {
			err = use(f)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// decode reads envoy.service.ratelimit.v3.RateLimitRequest.
func (r *request) decode(b []byte) error {
	return each(b, func(f field) (err error) {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			r.domain = string(f.content)
		case f.number == 2 && f.kind == protowire.BytesType:
			var d descriptor
			err = d.decode(f.content)
			if r.count++; r.count <= maxDescriptors {
				r.descriptors = append(r.descriptors, d)
			}
		case f.number == 3 && f.kind == protowire.VarintType:
			r.hits = uint32(f.value)
		}
		return err
	})
}

// decode reads envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.
func (d *descriptor) decode(b []byte) error {
	return each(b, func(f field) (err error) {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			var e policy.Entry
			e, err = decodeEntry(f.content)
			if d.count++; d.count <= maxEntries {
				d.entries = append(d.entries, e)
			}
		case f.number == 2 && f.kind == protowire.BytesType:
			d.hasLimit = true
			err = skipOverride(f.content)
		case f.number == 3 && f.kind == protowire.BytesType:
			d.hasHits = true
			err = each(f.content, func(f field) error {
				if f.number == 1 && f.kind == protowire.VarintType {
					d.hits = f.value
				}
				return nil
			})
		case f.number == 4 && f.kind == protowire.VarintType:
			d.negative = protowire.DecodeBool(f.value)
		}
		return err
	})
}

func decodeEntry(b []byte) (e policy.Entry, err error) {
	var key, value []byte
	err = each(b, func(f field) error {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			key = f.content
		case f.number == 2 && f.kind == protowire.BytesType:
			value = f.content
		}
		return nil
	})
	return policy.Entry{Key: string(key), Value: string(value)}, err
}

// skipOverride reads a limit that a descriptor says, whose third field is a message.
func skipOverride(b []byte) error {
	return each(b, func(f field) error {
		if f.number == 3 && f.kind == protowire.BytesType {
			return each(f.content, func(field) error { return nil })
		}
		return nil
	})
}
