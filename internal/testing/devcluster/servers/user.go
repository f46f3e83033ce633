package servers

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

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
	return account{}, errors.New("postgres does not run as root, and this machine has neither a user postgres nor nobody")
}

// Own makes a file or directory that of the user that Postgres runs as.
func Own(path string) error {
	a, err := unprivileged()
	if err != nil || a.credential == nil {
		return err
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential}
}
