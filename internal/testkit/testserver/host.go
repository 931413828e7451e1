package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serverDirs are where packages keep the scripts behind the system's wrappers. The wrappers insist on root and the system's node.
var serverDirs = []string{"/usr/lib/rabbitmq/bin", "/opt/homebrew/sbin", "/usr/local/sbin"}

// newHost finds a way to run a node: the installed server, else a Docker engine.
func newHost(t testing.TB, r *RabbitMQ, conf []string) (host, error) {
	t.Helper()
	for _, dir := range serverDirs {
		if _, err := os.Stat(filepath.Join(dir, "rabbitmq-server")); err == nil {
			return newProcess(t, r, dir, conf)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
	defer cancel()
	if err := exec.CommandContext(ctx, "docker", "info").Run(); err == nil {
		return newContainer(r, conf)
	}
	return nil, errors.New("tests of faults start RabbitMQ nodes of their own, but there is neither rabbitmq-server nor a Docker engine " +
		"(run `apt-get install rabbitmq-server`, or start Docker)")
}

// advanced has a node look again soon after messages whose delay was over while their queue was not there yet, as it happens in one restart of
// ten. It is 3 minutes by default, which is right for a cluster and too long for a test.
const advanced = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 5000}]}].\n"

// writeConfig writes rabbitmq.conf, advanced.config and the list of plugins into dir. listen is an address with a port for AMQP, and management one
// for its API or "".
func writeConfig(r *RabbitMQ, dir, listen, managementIP string, managementPort int, conf []string) error {
	lines := []string{"listeners.tcp.test = " + listen}
	plugins := "[]."
	if r.management != 0 {
		plugins = "[rabbitmq_management]."
		lines = append(lines, "management.tcp.ip = "+managementIP, fmt.Sprintf("management.tcp.port = %d", managementPort))
	}
	lines = append(lines, conf...)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "advanced.config"), []byte(advanced), 0o644),
		os.WriteFile(filepath.Join(dir, "enabled_plugins"), []byte(plugins+"\n"), 0o644),
	)
}

// run runs a command and returns its output. What it says to standard error goes into the error.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = env
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)+string(out)))
	}
	return string(out), err
}
