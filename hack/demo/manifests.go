package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed app.yaml
var appManifest string

//go:embed policy.yaml
var policyManifest string

//go:embed pool.yaml
var poolManifest string

//go:embed budget.yaml
var budgetManifest string

const nextDocument = "---\n"

// application is app.yaml for an application that is counted at tally and works at
// backend, if it is not empty.
func application(tally, backend string) string {
	return strings.NewReplacer("${TALLY}", tally, "${BACKEND}", backend).Replace(appManifest)
}

// budget is budget.yaml for the cluster that keeps it, or for one that reaches that at
// endpoint with the credentials of a Secret.
func budget(endpoint, secret string) string {
	hub := ""
	if endpoint != "" {
		hub = fmt.Sprintf("  hub: {endpoint: %q, secretRef: {name: %s}}", endpoint, secret)
	}
	return strings.ReplaceAll(budgetManifest, "${HUB}", hub)
}

// policy is policy.yaml for a policy that counts in the store, as spec.store has it.
func policy(store string) string {
	return strings.ReplaceAll(policyManifest, "${STORE}", store)
}
