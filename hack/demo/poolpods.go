package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"text/tabwriter"
	"time"
)

// A podState is what a sidecar says of its part of the pool.
type podState struct {
	Pod      string `json:"-"`
	Limit    int64  `json:"limit"`
	Share    int64  `json:"share"`
	InFlight int64  `json:"inFlight"`
	Inferred int64  `json:"inferred"`
	Fenced   bool   `json:"fenced"`
}

// askPods asks all sidecars at once, and leaves out those that have no pool or do not
// answer soon.
func (d *poolShow) askPods(ctx context.Context) []podState {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	endpoints, err := d.cluster.Endpoints(ctx)
	if err != nil {
		return nil
	}
	answers := make([]*podState, len(endpoints))
	var all sync.WaitGroup
	for i, e := range endpoints {
		if e.Namespace == namespace {
			all.Go(func() { answers[i] = askPod(ctx, e.Check) })
		}
	}
	all.Wait()
	var pods []podState
	for i, state := range answers {
		if state != nil {
			state.Pod = endpoints[i].Pod
			pods = append(pods, *state)
		}
	}
	return pods
}

// askPod returns nil when the sidecar has no pool or does not answer.
func askPod(ctx context.Context, check string) *podState {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+check+"/debug/config", http.NoBody)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var body struct {
		Pools []*podState `json:"pools"`
	}
	if json.NewDecoder(response.Body).Decode(&body) != nil || len(body.Pools) == 0 {
		return nil
	}
	return body.Pools[0]
}

func podStates(out io.Writer, pods []podState) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pod, now\tshare\tin flight\tinfers\t")
	for _, p := range pods {
		share := fmt.Sprint(p.Share)
		if p.Fenced {
			share = "fenced"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t\n", p.Pod, share, p.InFlight, p.Inferred)
	}
	_ = w.Flush()
}
