package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// downloads is where the files of a release are, behind its version.
const downloads = "https://github.com/weir-dev/weir/releases/download"

// A krewPlugin is a manifest by which krew, the package manager of kubectl's plugins, installs
// one (apiVersion krew.googlecontainertools.github.com/v1alpha2).
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"` // in the archive
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krew writes weir.yaml, which names the archives of the plugin and their sums.
func (r *release) krew(context.Context, []build) error {
	archives, err := filepath.Glob(filepath.Join(r.out, "kubectl-weir_*.tar.gz"))
	if err != nil {
		return err
	}
	manifest := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{Name: "weir"},
		Spec: krewSpec{
			Version: r.version, Homepage: "https://github.com/weir-dev/weir",
			ShortDescription: "Ask a cluster about its rate limits",
			Description: "Shows which pods are limited by Weir, which limits count a request and what is left of them, and who uses them. " +
				"Validates policies, and simulates them on an access log, without a cluster.",
		},
	}
	for _, archive := range archives {
		content, err := os.ReadFile(archive)
		if err != nil {
			return err
		}
		file := filepath.Base(archive)
		system, architecture, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file, "kubectl-weir_"), ".tar.gz"), "_")
		if !ok {
			return fmt.Errorf("%s is not called kubectl-weir_OS_ARCHITECTURE.tar.gz: build it with make plugins", file)
		}
		bin := "kubectl-weir"
		if system == "windows" {
			bin += ".exe"
		}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": system, "arch": architecture}},
			URI:      downloads + "/" + r.version + "/" + file, SHA256: fmt.Sprintf("%x", sha256.Sum256(content)), Bin: bin,
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "weir.yaml"), text, 0o644)
}
