package postgres

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
)

// TestAConnectionThatIsReadIsAlive leaves a reader on an idle connection, as the client
// does after a slow write.
func TestAConnectionThatIsReadIsAlive(t *testing.T) {
	t.Parallel()
	s := openAs(t, postgrestest.Start(t), postgrestest.User, read("clock"))
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	link := conn.Conn().PgConn().Conn()
	reading, verdict := make(chan struct{}), make(chan bool, 1)
	go func() {
		defer close(reading)
		_, _ = link.Read(make([]byte, 1)) // ends at the deadline
	}()
	<-time.After(10 * time.Millisecond)
	go func() {
		good, _ := alive(t.Context(), conn.Conn())
		verdict <- good
	}()
	select {
	case good := <-verdict:
		if !good {
			t.Error("the connection is said to be dead")
		}
	case <-time.After(5 * time.Second):
		t.Error("the question waits for the reader")
	}
	if err := link.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	<-reading
	if err := link.SetReadDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
}
