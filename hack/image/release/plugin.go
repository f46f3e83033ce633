package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// completer has kubectl complete the plugin's arguments.
	completer = "kubectl_complete-weir"
	// others has the licences and notices of all modules that the program contains.
	others = "THIRD-PARTY-LICENSES"
)

// plugins packs each program of -plugins, such as kubectl-weir_linux_amd64, into an archive with
// the licences and, but for Windows, the completer. Two archives of the same files are the same.
func (r *release) plugins(context.Context, []build) error {
	texts, err := filepath.Glob(filepath.Join(r.programs, "kubectl-weir_*.licences"))
	if err != nil {
		return err
	}
	if len(texts) == 0 {
		return fmt.Errorf("%s has no kubectl-weir_OS_ARCHITECTURE.licences: run make plugins VERSION=%s", r.programs, r.version)
	}
	for _, licences := range texts {
		platform := strings.TrimSuffix(filepath.Base(licences), ".licences")
		suffix := ""
		if strings.Contains(platform, "_windows_") {
			suffix = ".exe"
		}
		name := "kubectl-weir" + suffix
		files := map[string]string{
			name: filepath.Join(r.programs, platform+suffix), others: licences,
			"LICENSE": filepath.Join(r.source, "LICENSE"), completer: filepath.Join(r.source, "cmd", "kubectl-weir", completer),
		}
		names := []string{"LICENSE", others, name, completer}
		if suffix != "" { // it is a script of a Unix shell
			names = names[:3]
		}
		if err := pack(filepath.Join(r.out, platform+".tar.gz"), files, names); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return nil
}

// pack writes an archive of files, in an order.
func pack(to string, files map[string]string, names []string) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, name := range names {
		content, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		mode := int64(0o755)
		if name == "LICENSE" || name == others {
			mode = 0o644
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}
