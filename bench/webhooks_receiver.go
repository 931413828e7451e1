package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// receiverVariable is set in the process that this program starts itself as, to receive webhooks.
const receiverVariable = "CAISSON_BENCH_RECEIVER"

// receiveHooks is that process: it answers every request as fast as it can, until its input ends.
func receiveHooks() error {
	var lc net.ListenConfig
	listener, err := lc.Listen(context.Background(), "tcp4", "0.0.0.0:0") // one socket for all of 127.0.0.0/8
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
		if err != nil || !at.IP.IsLoopback() {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(io.Discard, r.Body) // what was cut is the sender's to notice
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close() // the process ends with it
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// hookReceiver is the process as its parent sees it.
type hookReceiver struct {
	cmd *exec.Cmd
	in  io.Closer
}

func startHookReceiver(ctx context.Context) (*hookReceiver, int, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), receiverVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	r := &hookReceiver{cmd: cmd, in: in}
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		return nil, 0, errors.Join(errNoReceiver, err, r.stop())
	}
	return r, port, nil
}

func (r *hookReceiver) stop() error { return errors.Join(r.in.Close(), r.cmd.Wait()) }
