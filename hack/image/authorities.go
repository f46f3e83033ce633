package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates is the package that has them, in this module.
const certificates = "golang.org/x/crypto/x509roots/fallback/bundle"

// authoritiesModule returns the module that the authorities come from.
func authoritiesModule(ctx context.Context, architecture string) (*module, error) {
	from := program{source: ".", pkg: certificates}
	all, err := from.modules(ctx, architecture)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if strings.HasPrefix(certificates, m.path+"/") {
			return m, m.license()
		}
	}
	return nil, fmt.Errorf("no module has the package %s", certificates)
}

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
