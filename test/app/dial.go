package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// dial opens connections for tests of NetworkPolicies: port 8080 answers /dial with open when one to
// the address comes about within two seconds, and else with the error.
func dial(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/dial", func(w http.ResponseWriter, r *http.Request) {
		dialer := net.Dialer{Timeout: 2 * time.Second}
		connection, err := dialer.DialContext(r.Context(), "tcp", r.FormValue("address"))
		if err != nil {
			fmt.Fprint(w, err)
			return
		}
		connection.Close()
		fmt.Fprint(w, "open")
	})
	return listenHTTP(ctx, ":8080", mux)
}
