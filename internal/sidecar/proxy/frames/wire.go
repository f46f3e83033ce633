package frames

import (
	"encoding/binary"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameHeader = 9
	frameBytes  = 16 << 10 // that a frame carries at most
)

// appendHeader appends the header of a frame.
func appendHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendWindowUpdate(b []byte, stream uint32, n int64) []byte {
	b = appendHeader(b, 4, http2.FrameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	b = appendHeader(b, 4, http2.FrameRSTStream, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

func appendPing(b []byte, flags http2.Flags, data [8]byte) []byte {
	b = appendHeader(b, len(data), http2.FramePing, flags, 0)
	return append(b, data[:]...)
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode) []byte {
	b = appendHeader(b, 8, http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendHeader(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

// appendBlock appends an encoded header block, in as many frames as it takes.
func appendBlock(b []byte, stream uint32, block []byte, most int, ends bool) []byte {
	kind, flags := http2.FrameHeaders, http2.Flags(0)
	if ends {
		flags = http2.FlagHeadersEndStream
	}
	for {
		part := block[:min(len(block), most)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		b = appendHeader(b, len(part), kind, flags, stream)
		b = append(b, part...)
		if len(block) == 0 {
			return b
		}
		kind, flags = http2.FrameContinuation, 0
	}
}

// field makes a field, whose name is in lower case.
func field(name, value string) hpack.HeaderField { return hpack.HeaderField{Name: name, Value: value} }
