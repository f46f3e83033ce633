package framing

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// TestTheScannerAgreesWithTheGrammar compares how far a stream may be read.
func TestTheScannerAgreesWithTheGrammar(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	streams := framingtest.Known()
	for range 5000 {
		streams = append(streams, framingtest.Mutant(random))
	}
	for _, stream := range streams {
		agree(t, []byte(stream))
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// the target, the host and what Connection names. So it may be the stricter one.
func agree(t *testing.T, stream []byte) {
	t.Helper()
	var all scanner
	good, err := all.scan(stream)
	var single scanner
	for i := 0; i < len(stream) && len(stream) < maxLine; i++ {
		n, errSingle := single.scan(stream[i : i+1])
		if n == 0 {
			if err == nil || errSingle.Error() != err.Error() || i < good {
				t.Fatalf("%.400q: read at once %d bytes pass and then %v, read singly %d and then %v", stream, good, err, i, errSingle)
			}
			break
		}
	}
	if single.next == otherProtocol {
		return
	}
	requests, verdict := framingtest.ReadAll(stream)
	if verdict == framingtest.Complete && err != nil && len(stream) < maxLine && (len(requests) == 0 || !requests[len(requests)-1].Last()) {
		t.Fatalf("%.400q is well-formed, and the scanner says: %v", stream, err)
	}
	// The grammar reads the same in what passes: a request more there is one that
	// passed.
	passed, _ := framingtest.ReadAll(stream[:good])
	if err != nil && len(passed) > len(requests) {
		t.Fatalf("%.400q: %d requests pass, of %d", stream, len(passed), len(requests))
	}
	// The grammar may know already that a line is wrong that has not ended.
	if err == nil && bytes.HasSuffix(stream, []byte("\n")) && framesWrong(stream) {
		t.Fatalf("%.400q passes", stream)
	}
}

// framesWrong reports whether a stream is malformed in what the scanner is about: it
// still is when the addresses in it are beyond doubt.
func framesWrong(stream []byte) bool {
	for rest := stream; len(rest) > 0; {
		m, next, v := framingtest.Read(rest)
		if v == framingtest.Malformed {
			head, body, _ := bytes.Cut(rest, []byte("\r\n\r\n"))
			_, _, v = framingtest.Read(append(plain(head), append([]byte("\r\n\r\n"), body...)...))
			return v == framingtest.Malformed
		}
		if v != framingtest.Complete || m.Last() {
			return false
		}
		rest = m.Skip(next)
	}
	return false
}

// plain returns a head with a target and a host that nobody doubts, and without options
// of the connection, as far as it has lines for them.
func plain(head []byte) []byte {
	lines := bytes.Split(head, []byte("\r\n"))
	if parts := bytes.Split(lines[0], []byte(" ")); len(parts) == 3 && len(parts[1]) > 0 && isWord(parts[1]) {
		lines[0] = bytes.Join([][]byte{[]byte("GET"), []byte("/"), parts[2]}, []byte(" "))
		if !IsToken(parts[0]) {
			lines[0][0] = '('
		}
	}
	for i, line := range lines[1:] {
		name, value, reason := splitField(line)
		switch {
		case reason != "":
		case bytes.EqualFold(name, []byte("Host")) && len(value) > 0:
			lines[i+1] = []byte("Host: a")
		case bytes.EqualFold(name, []byte("Connection")):
			lines[i+1] = []byte("Connection: keep-alive")
		}
	}
	return bytes.Join(lines, []byte("\r\n"))
}

// FuzzScanner looks for streams that the scanner and the grammar read differently.
func FuzzScanner(f *testing.F) {
	for i, stream := range framingtest.Known() {
		if i%40 == 0 && len(stream) < 1000 {
			f.Add([]byte(stream))
		}
	}
	f.Fuzz(agree)
}
