package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

const (
	frameBytes  = 16 << 10
	firstWindow = 65535   // RFC 9113, section 6.9.2
	wideWindow  = 1 << 30 // that servers are given
	unreadBytes = 1 << 20 // that are read before the server is given as much again
)

// A link is a connection of HTTP/2.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	out    *bufio.Writer
	frames *http2.Framer
	stream uint32 // that the next call gets
	unread uint32 // bytes that the server was not yet allowed to replace
	window int64  // that the server takes over the connection
	first  int64  // of a stream
}

func newLink(address string) (*link, error) {
	dialled, err := net.Dial("tcp", address) //nolint:noctx // to this machine
	if err != nil {
		return nil, err
	}
	conn := socket.NewConn(dialled) // it takes less of the processors
	l := &link{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10),
		stream: 1, window: firstWindow, first: firstWindow,
	}
	l.frames = http2.NewFramer(l.out, l.in)
	l.frames.SetReuseFrames()
	_, err = l.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		l.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: wideWindow}),
		l.frames.WriteWindowUpdate(0, wideWindow), l.out.Flush())
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// head encodes the head of a call. It says the same each time.
func head(path string) (block []byte, err error) {
	var b headers
	fields := hpack.NewEncoder(&b)
	fields.SetMaxDynamicTableSize(0)
	err = encode(fields, path)
	return b, err
}

// heads encodes the head of the first call of a connection and that of all others, which refers to
// the first one.
func heads(path string) (first, others []byte, err error) {
	var b headers
	fields := hpack.NewEncoder(&b)
	err = encode(fields, path)
	first, b = b, nil
	err = errors.Join(err, encode(fields, path))
	return first, b, err
}

func encode(fields *hpack.Encoder, path string) error {
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", path},
		{":authority", "bench"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		if err := fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return nil
}

// headers collects an encoded block.
type headers []byte

func (h *headers) Write(p []byte) (int, error) {
	*h = append(*h, p...)
	return len(p), nil
}

// begin begins a call.
func (l *link) begin(head []byte) (stream uint32, err error) {
	stream = l.stream
	l.stream += 2
	return stream, l.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head, EndHeaders: true})
}

// flush sends what is written once all that has come is read.
func (l *link) flush() error {
	if l.in.Buffered() > 0 {
		return nil
	}
	return l.out.Flush()
}

// came counts bytes of data, and has the server replace them.
func (l *link) came(n uint32) (err error) {
	if l.unread += n; l.unread > unreadBytes {
		err = l.frames.WriteWindowUpdate(0, l.unread)
		l.unread = 0
	}
	return err
}

// control does what a frame asks for that belongs to no call. wider says that the server takes
// more than before, and by how much of each stream.
func (l *link) control(frame http2.Frame) (wider bool, by int64, err error) {
	switch f := frame.(type) {
	case *http2.DataFrame:
		return false, 0, l.came(f.Length)
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			l.window += int64(f.Increment)
			return true, 0, nil
		}
	case *http2.SettingsFrame:
		if f.IsAck() {
			return false, 0, nil
		}
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			by = int64(v) - l.first
			l.first = int64(v)
		}
		return by != 0, by, l.frames.WriteSettingsAck()
	case *http2.PingFrame:
		if !f.IsAck() {
			err = l.frames.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		err = fmt.Errorf("the server goes away: %v", f.ErrCode)
	}
	return false, 0, err
}
