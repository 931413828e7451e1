package cli

import (
	"cmp"
	"os"
	"os/user"
)

// Actor returns who runs the program, as user@host, as far as the system tells.
func Actor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return cmp.Or(name, "unknown") + "@" + host
}
