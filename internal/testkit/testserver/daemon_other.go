//go:build !unix

package testserver

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
)

var errNotUnix = errors.New("servers of a test's own run on Unix only, and RabbitMQ nodes also in Docker")

// daemon needs process groups.
type daemon struct {
	dir  string
	user *account
}

func (d *daemon) output() string                            { return filepath.Join(d.dir, "output") }
func (d *daemon) begin(context.Context, *exec.Cmd) error    { return errNotUnix }
func (d *daemon) end(context.Context, syscall.Signal) error { return errNotUnix }
func (d *daemon) kill(context.Context) error                { return errNotUnix }
func (d *daemon) log(context.Context) string                { return "" }
func (d *daemon) alive(context.Context) error               { return errNotUnix }

type account struct{}

func serverAccount() (*account, error) { return nil, errNotUnix }
func (*account) own(string) error      { return errNotUnix }
func (*account) runs(*exec.Cmd)        {}
