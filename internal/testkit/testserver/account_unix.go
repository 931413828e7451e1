//go:build unix

package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is a user of the machine. Nil is the one who runs the test.
type account struct {
	uid, gid int
}

// serverAccount returns the account for servers that refuse to run as root: nil, unless the caller is root.
func serverAccount() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // the caller's own account
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("neither PostgreSQL nor PgBouncer runs as root, and there is no other user for it (run `make services`, which "+
			"installs Debian's packages with their user, or run the tests as another user): %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, fmt.Errorf("user id of %s: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, fmt.Errorf("group id of %s: %w", u.Username, err)
	}
	return &account{uid: uid, gid: gid}, nil
}

// runs has the account run cmd, in a process group of its own.
func (a *account) runs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of a Ctrl-C, which would end it before the test
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // ids of the system
	}
}

// own gives the account a directory and what is in it.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, a.uid, a.gid)
	})
}
