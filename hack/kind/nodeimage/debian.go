package nodeimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// release is the Debian of the node, whatever the machine runs: it is the last
// one whose systemd accepts control groups of version 1.
const release = "bookworm"

// packages are what kind's own image installs, without network file systems.
var packages = []string{
	"systemd", "systemd-sysv", "runc", "libseccomp2",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool",
	"util-linux", "mount", "kmod", "e2fsprogs", "pigz",
	"bash", "ca-certificates", "curl", "jq", "procps",
}

// excess is what no node reads.
var excess = []string{"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "var/lib/apt/lists", "var/cache/apt", "var/log"}

// installDebian fills the root file system, from an archive where the same
// packages were installed before.
func (w *workshop) installDebian(ctx context.Context) error {
	sum := sha256.Sum256([]byte(release + strings.Join(packages, " ") + strings.Join(excess, " ")))
	cache, err := machine.Cache("node")
	if err != nil {
		return err
	}
	archive := filepath.Join(cache, release+"-"+hex.EncodeToString(sum[:])[:12]+".tar")
	if err := os.MkdirAll(w.root, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(archive); err == nil {
		return w.run(ctx, w.root, nil, "tar", "--extract", "--file", archive, "--numeric-owner", "--xattrs")
	}
	if err := w.debootstrap(ctx); err != nil {
		return err
	}
	partial := archive + ".partial"
	err = w.run(ctx, w.root, nil, "tar", "--create", "--file", partial, "--numeric-owner", "--xattrs", ".")
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return os.Rename(partial, archive)
}

func (w *workshop) debootstrap(ctx context.Context) error {
	address, err := mirror(os.DirFS("/etc"))
	if err != nil {
		return err
	}
	if err := machine.Install(ctx, "debootstrap", "debootstrap"); err != nil {
		return err
	}
	err = w.run(ctx, w.dir, nil, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), release, w.root, address)
	if err != nil {
		return err
	}
	for _, dir := range excess {
		if err := os.RemoveAll(filepath.Join(w.root, dir)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(w.root, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}
