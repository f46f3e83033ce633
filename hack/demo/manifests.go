package main

import (
	_ "embed"
	"strings"
)

//go:embed app.yaml
var appManifest string

//go:embed policy.yaml
var policyManifest string

//go:embed pool.yaml
var poolManifest string

const nextDocument = "---\n"

// application is app.yaml for an application that is counted at tally and works at
// backend, if it is not empty.
func application(tally, backend string) string {
	return strings.NewReplacer("${TALLY}", tally, "${BACKEND}", backend).Replace(appManifest)
}

// policy is policy.yaml for a policy that counts in the store, as spec.store has it.
func policy(store string) string {
	return strings.ReplaceAll(policyManifest, "${STORE}", store)
}
