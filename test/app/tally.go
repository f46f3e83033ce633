package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// tally counts what applications report on port 9000, and says on port 8080 how
// many requests reached each pod between two instants.
func tally(ctx context.Context) error {
	t, err := traffic.Listen(":9000")
	if err != nil {
		return err
	}
	defer t.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/between", func(w http.ResponseWriter, r *http.Request) {
		from, to, ok := interval(w, r)
		if !ok {
			return
		}
		pods := map[string]int64{}
		for _, name := range t.Pods() {
			pods[name] = t.Pod(name).Between(from, to)
		}
		answer(w, pods)
	})
	return listenHTTP(ctx, ":8080", mux)
}

// interval reads the instants from and to, in microseconds since 1970.
func interval(w http.ResponseWriter, r *http.Request) (from, to time.Time, ok bool) {
	var micros [2]int64
	for i, name := range []string{"from", "to"} {
		var err error
		if micros[i], err = strconv.ParseInt(r.FormValue(name), 10, 64); err != nil {
			http.Error(w, name+" is not a number of microseconds since 1970", http.StatusBadRequest)
			return from, to, false
		}
	}
	return time.UnixMicro(micros[0]), time.UnixMicro(micros[1]), true
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone otherwise
}
