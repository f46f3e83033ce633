package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// patience is how long a request may take.
	patience = 5 * time.Second

	// noAnswer counts requests without an answer.
	noAnswer = "no answer"
)

// load gets a URL that many times a second, whatever the answers, and writes a line with the
// number of each kind of answer every second until ctx is done.
func load(ctx context.Context, url, rate string, out io.Writer) error {
	perSecond, err := strconv.Atoi(rate)
	if err != nil || perSecond < 1 || perSecond > 10000 {
		return fmt.Errorf("RATE is %q: set it to requests a second, from 1 to 10000", rate)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	// Room for all that can be in flight, so that none waits for the line to be written.
	answers := make(chan string, 2*perSecond*int(patience/time.Second))
	send, show := time.NewTicker(time.Second/time.Duration(perSecond)), time.NewTicker(time.Second)
	defer send.Stop()
	defer show.Stop()
	count := map[string]int{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-send.C:
			go func() { answers <- get(ctx, client, url) }()
		case answer := <-answers:
			count[answer]++
		case <-show.C:
			fmt.Fprintln(out, line(count))
			clear(count)
		}
	}
}

// get returns the status of the answer.
func get(ctx context.Context, client *http.Client, url string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return noAnswer
	}
	answer, err := client.Do(r)
	if err != nil {
		return noAnswer
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be used again
	return answer.Status
}

// line is such as: 100 × 200 OK, 100 × 429 Too Many Requests.
func line(count map[string]int) string {
	var parts []string
	for _, answer := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d × %s", count[answer], answer))
	}
	return strings.Join(parts, ", ")
}
