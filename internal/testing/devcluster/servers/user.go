package servers

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
)

// A spec is a program, and the user that it runs as.
type spec struct {
	path, log string
	args, env []string // env is added to that of this process
	as        account
	ready     func(context.Context) error // nil when it is ready once it takes connections
}

func (s spec) start() (*process.Process, error) {
	return process.Start(process.Spec{
		Path: s.path, Args: s.args, Env: append(os.Environ(), s.env...), Log: s.log, Credential: s.as.credential,
	})
}

// An account is the user that a program runs as; the zero value is the user of this process.
type account struct{ credential *syscall.Credential }

// unprivileged returns an account that is not root's: Postgres does not run as
// root.
func unprivileged() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, fmt.Errorf("postgres does not run as root, and this machine has neither a user postgres nor nobody")
}

func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential}
}
