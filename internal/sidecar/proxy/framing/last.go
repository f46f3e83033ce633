package framing

import (
	"context"
	"fmt"
	"io"
	"time"
)

// restTime is how long a client has to send the rest of a body that is not read.
const restTime = 5 * time.Second

// Last says that the answer to the request with this context has ended before all of its body
// was read, and that the connection ends with it. A read of the body that net/http interrupts
// loses its place among the chunks, and net/http would take the rest for the next request.
func Last(ctx context.Context) {
	if c, ok := ctx.Value(contextKey{}).(*Conn); ok {
		c.last.Store(true)
	}
}

// drop reads the rest of the message into p and returns its end as that of the connection.
// Closed with something unread it would be reset, and the client might lose the answer.
func (c *Conn) drop(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.Conn.SetReadDeadline(time.Now().Add(restTime)); err != nil {
		return 0, fmt.Errorf("bound the rest of a body: %w", err)
	}
	for !c.scanner.atBoundary() {
		n, err := c.read(p)
		if _, malformed := c.scanner.scan(p[:n]); malformed != nil || err != nil {
			break // it ends in any case
		}
	}
	return 0, io.EOF
}
