package sidecar

import (
	"net/http"
	"time"
)

// bodyTimeout is how long a client has to send the body of a request to one of the ports that only the
// pod and its probes ask.
const bodyTimeout = 5 * time.Second

// boundBody bounds the time that the body of a request takes to come. net/http reads what a handler
// leaves of it before it answers, and waits for that within the same time. Behind the end of the body it has no
// bound.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a connection that is closed needs none
	}
}
