package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestLoadReportsItsResults: every other request is refused, and the line says so.
func TestLoadReportsItsResults(t *testing.T) {
	turns := make(chan int, 2)
	turns <- http.StatusOK
	turns <- http.StatusTooManyRequests
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := <-turns
		turns <- status
		w.WriteHeader(status)
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- load(ctx, server.URL, "100", out)
		out.Close()
	}()
	scanner := bufio.NewScanner(lines)
	want := regexp.MustCompile(`^[1-9]\d* × 200 OK, [1-9]\d* × 429 Too Many Requests$`)
	for scanner.Scan() && !want.MatchString(scanner.Text()) {
		t.Logf("%q is not that yet", scanner.Text())
	}
	stop()
	if !want.MatchString(scanner.Text()) {
		t.Errorf("the last line is %q", scanner.Text())
	}
	_, _ = io.Copy(io.Discard, lines)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRefusedArguments(t *testing.T) {
	for says, args := range map[string][]string{"usage": {"greet"}, "RATE is": {"load", "http://checkout"}} {
		t.Setenv("RATE", "many")
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error is %v, want one with %q", args, err, says)
		}
	}
}
