package http1

import (
	"net/http"
	"strings"
	"testing"
)

// TestChunksAreReadHoweverTheyCome, and nothing behind them.
func TestChunksAreReadHoweverTheyCome(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		stream, data, rest string
		trailer            http.Header
		malformed          bool
	}{
		"none":                   {stream: "0\r\n\r\n"},
		"one":                    {stream: "2\r\nab\r\n0\r\n\r\n", data: "ab"},
		"some":                   {stream: "1\r\na\r\n12c;x=\"y\"\r\n" + long + "\r\n2 \t\r\nbc\r\n00\r\n\r\nGET /", data: "a" + long + "bc", rest: "GET /"},
		"a trailer":              {stream: "1\r\na\r\n0\r\nX-Sum: 7\r\nx-sum: 8\r\n\r\n!", data: "a", rest: "!", trailer: http.Header{"X-Sum": {"7", "8"}}},
		"a line that ends in LF": {stream: "1\na\r\n0\r\n\r\n", malformed: true},
		"a chunk too long":       {stream: "1\r\nab\r\n0\r\n\r\n", malformed: true},
		"no size":                {stream: "x\r\n", malformed: true},
		"a trailer that frames":  {stream: "0\r\nContent-Length: 1\r\n\r\n", malformed: true},
		"a long line":            {stream: "1;a=" + strings.Repeat("b", maxChunkLine) + "\r\na\r\n", malformed: true},
		"a long trailer":         {stream: "0\r\n" + strings.Repeat("X: y\r\n", maxTrailer/4) + "\r\n", malformed: true},
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(tc.stream); size = size*3/2 + 1 {
				var d chunks
				data, rest := "", ""
				for from := 0; from < len(tc.stream); from += size {
					part := []byte(tc.stream[from:min(len(tc.stream), from+size)])
					if d.next == chunksOver {
						rest += string(part)
						continue
					}
					n, used := d.decode(part)
					data += string(part[:n])
					rest += string(part[used:])
					if d.malformed {
						break
					}
				}
				if d.malformed != tc.malformed {
					t.Fatalf("%d bytes at a time: malformed: %t", size, d.malformed)
				}
				if tc.malformed {
					continue
				}
				if data != tc.data || rest != tc.rest || d.next != chunksOver || d.header().Get("X-Sum") != tc.trailer.Get("X-Sum") || len(d.header()["X-Sum"]) != len(tc.trailer["X-Sum"]) {
					t.Fatalf("%d bytes at a time: %q, rest %q, trailer %v", size, data, rest, d.header())
				}
			}
		})
	}
}

// TestAChunkIsFramedInItsBuffer.
func TestAChunkIsFramedInItsBuffer(t *testing.T) {
	buffer := make([]byte, smallBytes)
	for _, n := range []int{0, 1, 15, 16, 255, 256, smallBytes - headroom - 2} {
		data := strings.Repeat("d", n)
		copy(buffer[headroom:], data)
		if got, want := string(frameChunk(buffer, n)), string(appendChunk(nil, []byte(data))); got != want {
			t.Errorf("%d bytes: %.20q, want %.20q", n, got, want)
		}
	}
}
