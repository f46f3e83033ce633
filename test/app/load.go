package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// load sends requests to TARGET, host:port, at RATE a second, each over a connection of its
// own when CONNECTIONS is fresh. It serves their results between two instants on port 8080.
// /rate changes the rate.
func load(ctx context.Context) error {
	perSecond, err := strconv.ParseFloat(os.Getenv("RATE"), 64)
	if err != nil || perSecond <= 0 {
		return fmt.Errorf("RATE is %q: set it to requests a second, above 0", os.Getenv("RATE"))
	}
	l := traffic.NewLoad(perSecond)
	if os.Getenv("CONNECTIONS") == "fresh" {
		l.Spread()
	}
	l.OnFailure = func(err error) { log.Print(err) }
	l.SetTargets([]traffic.Target{{Pod: "all", Address: os.Getenv("TARGET")}})
	mux := http.NewServeMux()
	mux.HandleFunc("/rate", func(w http.ResponseWriter, r *http.Request) {
		perSecond, err := strconv.ParseFloat(r.FormValue("perSecond"), 64)
		if err != nil || perSecond <= 0 {
			http.Error(w, "perSecond is not a number above 0", http.StatusBadRequest)
			return
		}
		l.SetRate(perSecond)
	})
	mux.HandleFunc("/outcomes", func(w http.ResponseWriter, r *http.Request) {
		from, to, ok := interval(w, r)
		if !ok {
			return
		}
		o := l.Of("all")
		answer(w, map[string]int64{
			"offered": o.Offered.Between(from, to), "admitted": o.Admitted.Between(from, to),
			"refused": o.Refused.Between(from, to), "failed": o.Failed.Between(from, to),
		})
	})
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { l.Run(ctx) })
	return listenHTTP(ctx, ":8080", mux)
}
