package framing

// An early is what a client sends behind a request for another protocol before it has the
// answer. It belongs to the tunnel when the app agrees, and is the next request when it does
// not, so nothing of it may be judged before that is known.
//
// Until then net/http reads a single byte, in the background, to see whether the client
// leaves. So one byte is handed on unseen and the rest is held. A second read says that the
// request was answered and that the connection goes on as it was.
type early struct {
	first []byte // handed on and not checked: at most one byte
	held  []byte // read, and neither handed on nor checked
}

// read reads what is held, or else from the client.
func (c *Conn) read(p []byte) (int, error) {
	if len(c.early.held) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early.held)
	if c.early.held = c.early.held[n:]; len(c.early.held) == 0 {
		c.early.held = nil
	}
	return n, nil
}

// peek reads the byte that is handed on before it is known what it belongs to.
func (c *Conn) peek(p []byte) (int, error) {
	n, err := c.read(p[:min(len(p), 1)])
	c.early.first = append(c.early.first, p[:n]...)
	return n, err
}

// undecided reports whether what comes next may belong to a tunnel, and nothing of it was
// handed on.
func (c *Conn) undecided() bool {
	return c.scanner.awaitsAnswer() && len(c.early.first) == 0 && !c.tunnel.Load()
}

// decline says that the connection goes on as it was, and checks the byte that was not.
func (c *Conn) decline() error {
	first := c.early.first
	c.early.first = nil
	c.scanner.head.upgrade = false
	_, err := c.scanner.scan(first)
	return err
}

// hold keeps what follows a request for another protocol until that is answered.
func (c *Conn) hold(p []byte) {
	if len(p) > 0 {
		c.early.held = append(append([]byte{}, p...), c.early.held...)
	}
}
