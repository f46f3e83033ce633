package admin

import (
	"encoding/json"
	"net/http"

	"github.com/weir-dev/weir/internal/sidecar/recent"
)

// RefusalsPath is where Refusals are served.
const RefusalsPath = "/debug/refusals"

// Refusals shows the last requests that a sidecar answered in place of the app, the newest first.
// As a Config it belongs on the loopback address: paths of requests may be secrets.
type Refusals struct{ Ring *recent.Ring }

// refusals is what is answered.
type refusals struct {
	Items []recent.Refusal `json:"items"`
	Total int              `json:"total"` // since the sidecar started
}

// ServeHTTP answers with JSON.
func (s Refusals) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	all, added := s.Ring.All()
	text, err := json.Marshal(refusals{Items: all, Total: added})
	if err != nil {
		say(w, http.StatusInternalServerError, "the refusals cannot be shown\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
}
