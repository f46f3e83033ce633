package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities returns the certificates that Mozilla trusts for servers, as PEM. Those
// that it trusts under a condition are left out: a file of certificates cannot say it.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes all
		}
	}
	return all.Bytes()
}
