package portforward

import (
	"io"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Handler serves connections to ports of pods. dial opens one, by the request and the number of the
// port; its error is reported to the client.
func Handler(dial func(r *http.Request, port string) (net.Conn, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(httpstream.HeaderProtocolVersion, "portforward.k8s.io")
		var mu sync.Mutex
		waiting := map[string]httpstream.Stream{} // for its other half
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			mu.Lock()
			defer mu.Unlock()
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			other, ok := waiting[id]
			delete(waiting, id)
			switch {
			case !ok:
				waiting[id] = s
			case s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData:
				go carry(r, dial, s, other)
			default:
				go carry(r, dial, other, s)
			}
			return nil
		})
		if connection != nil {
			<-connection.CloseChan()
		}
	})
}

// carry connects a stream of bytes to a port, and writes to the other one why it cannot.
func carry(r *http.Request, dial func(*http.Request, string) (net.Conn, error), data, failures httpstream.Stream) {
	defer data.Close()
	defer failures.Close()
	c, err := dial(r, data.Headers().Get(corev1.PortHeader))
	if err != nil {
		_, _ = io.WriteString(failures, err.Error())
		return
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(c, data)
		_ = c.Close()
	}()
	_, _ = io.Copy(data, c)
}
