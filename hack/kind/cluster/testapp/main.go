// Command testapp answers from within a pod what the pod can reach.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// credentials are where Kubernetes puts a pod's own.
const credentials = "/var/run/secrets/kubernetes.io/serviceaccount/"

const patience = 5 * time.Second

func main() {
	http.HandleFunc("/caller", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
	http.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, &http.Client{Timeout: patience}, r.FormValue("url"))
	})
	http.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		authority, err := os.ReadFile(credentials + "ca.crt")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
		answer(w, r, &http.Client{Timeout: patience, Transport: transport}, "https://kubernetes.default.svc/version")
	})
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: patience}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

// answer passes on what an address answers.
func answer(w http.ResponseWriter, r *http.Request, client *http.Client, url string) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the caller sees what is missing
}
