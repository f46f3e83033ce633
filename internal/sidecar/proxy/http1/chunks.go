package http1

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// maxChunkLine and maxTrailer bound the line in front of a chunk, and all that follows the last
// one.
const (
	maxChunkLine = 4 << 10
	maxTrailer   = 4 << 10
)

// A chunkPart is what the next line of a body in chunks is.
type chunkPart uint8

const (
	chunkSize chunkPart = iota
	chunkEnd            // the empty line behind a chunk's data
	trailerField
	chunksOver
)

// A chunks reads a body in chunks.
type chunks struct {
	next      chunkPart
	left      uint64 // of the present chunk
	line      []byte // that has come in part
	trailer   []byte // the lines of the trailer, each behind the other
	lenient   bool   // with the fields of a trailer, as of answers
	malformed bool
}

// decode reads what comes next from p. It moves the data to the beginning of p, and returns how
// much of it there is and how much of p is used: all but what follows the body.
func (d *chunks) decode(p []byte) (n, used int) {
	for used < len(p) && d.next != chunksOver && !d.malformed {
		if d.left > 0 {
			part := int(min(d.left, uint64(len(p)-used)))
			if n != used {
				copy(p[n:], p[used:used+part])
			}
			n, used, d.left = n+part, used+part, d.left-uint64(part)
			continue
		}
		end := bytes.IndexByte(p[used:], '\n')
		if end < 0 {
			d.keep(p[used:])
			return n, len(p)
		}
		line := p[used : used+end]
		if used += end + 1; len(d.line) > 0 {
			line = append(d.line, line...)
			d.line = nil
		}
		d.read(line)
	}
	return n, used
}

// keep keeps the beginning of a line.
func (d *chunks) keep(part []byte) {
	d.line = append(d.line, part...)
	d.malformed = len(d.line) > maxChunkLine
}

// read reads a line, which ends in a CR.
func (d *chunks) read(line []byte) {
	content, ok := bytes.CutSuffix(line, []byte("\r"))
	if !ok || len(line) > maxChunkLine {
		d.malformed = true
		return
	}
	switch d.next {
	case chunkSize:
		size, reason := framing.ParseChunk(content)
		d.malformed = reason != ""
		if d.left, d.next = size, chunkEnd; size == 0 {
			d.next = trailerField
		}
	case chunkEnd:
		d.next, d.malformed = chunkSize, len(content) > 0
	default:
		if len(content) == 0 {
			d.next = chunksOver
			return
		}
		_, _, reason := framing.Trailer(content)
		d.trailer = append(append(d.trailer, content...), '\n')
		d.malformed = reason != "" && !d.lenient || len(d.trailer) > maxTrailer
	}
}

// header returns the trailer; nil where there is none.
func (d *chunks) header() (trailer http.Header) {
	for line := range bytes.Lines(d.trailer) {
		name, value, reason := framing.Trailer(line[:len(line)-1])
		if reason != "" {
			continue
		}
		if trailer == nil {
			trailer = http.Header{}
		}
		trailer.Add(string(name), string(value))
	}
	return trailer
}

// headroom is how much stands in front of a chunk at most.
const headroom = 16 + len("\r\n")

// appendChunk appends data as a chunk.
func appendChunk(to, data []byte) []byte {
	if len(data) == 0 {
		return to
	}
	to = strconv.AppendInt(to, int64(len(data)), 16)
	to = append(to, "\r\n"...)
	to = append(to, data...)
	return append(to, "\r\n"...)
}

// frameChunk makes a chunk of the n bytes behind the headroom of a buffer, which has room for the
// end of a line behind them.
func frameChunk(buffer []byte, n int) []byte {
	if n == 0 {
		return buffer[headroom:headroom]
	}
	var size [headroom]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	from := headroom - len(line)
	copy(buffer[from:], line)
	return append(buffer[from:headroom+n], "\r\n"...)
}

// appendLast appends what ends a body in chunks.
func appendLast(to []byte, trailer http.Header) []byte {
	to = append(to, "0\r\n"...)
	return append(appendSorted(to, trailer), "\r\n"...)
}

// appendSorted appends the fields of a header in alphabetical order.
func appendSorted(to []byte, h http.Header) []byte {
	var few [32]string
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		to = appendFields(to, name, h[name])
	}
	return to
}

// appendFields appends a line for each value.
func appendFields(to []byte, name string, values []string) []byte {
	for _, value := range values {
		to = appendField(to, name, value)
	}
	return to
}

func appendField(to []byte, name, value string) []byte {
	to = append(append(to, name...), ": "...)
	return append(append(to, value...), "\r\n"...)
}
