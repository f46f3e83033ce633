// Package crd holds the CustomResourceDefinitions, for programs that read objects without
// an API server.
package crd

import "embed"

// Bases has a file bases/weir.dev_PLURAL.yaml for each kind.
//
//go:embed bases/*.yaml
var Bases embed.FS
