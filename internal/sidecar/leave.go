package sidecar

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"
)

const leaveUsage = `Reports to the sidecar that its pod is about to end: it goes on serving, and has clients
open their next connection elsewhere.

Usage:
  sidecar leave [--check-address HOST:PORT]
`

const (
	leavePath = "/v1/leave"
	// noticeTimeout bounds the notice: the end of a pod must not wait for it.
	noticeTimeout = 2 * time.Second
)

// leave reports to the sidecar at a check address that the pod is about to end.
//
// It is what the kubelet runs when it begins to end a pod, at the same time as it
// signals the app, and long before it stops a sidecar of the native form. From then on
// the Service sends no more clients here. Connections that are kept for later requests
// would stay until the app is gone, and the request after that would find no app. So
// each of them ends with the request it is at.
func leave(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("leave", flag.ContinueOnError)
	address := flags.String("check-address", defaultCheck, "")
	if over, err := parsed(flags, args, leaveUsage, out); over {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+*address+leavePath, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: is a sidecar running there?", err)
	}
	_ = response.Body.Close() // nothing in it matters
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the sidecar at %s answered %s", *address, response.Status)
	}
	return nil
}

// leaving hears what leave sends. Only the pod reaches the check API.
func (f *front) leaving(w http.ResponseWriter, _ *http.Request) {
	for _, s := range f.deciding {
		s.leave()
	}
	w.WriteHeader(http.StatusNoContent)
}
