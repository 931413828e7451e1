package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// process is a node that runs from the installed server, as the user who runs the test.
type process struct {
	daemon

	bin string // the directory of the server's scripts
	env []string
}

func newProcess(t testing.TB, r *RabbitMQ, bin string, conf []string) (host, error) {
	t.Helper()
	if err := writeConfig(r, r.dir, loopback(r.port), "127.0.0.1", r.management, conf); err != nil {
		return nil, err
	}
	// In place of the machine's own settings, which would rename the node.
	if err := os.WriteFile(filepath.Join(r.dir, "env.conf"), nil, 0o644); err != nil {
		return nil, err
	}
	// Nothing else of the caller's environment is passed on. The home holds the secret that node and rabbitmqctl share.
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + r.dir,
		"ERL_CRASH_DUMP_SECONDS=0",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		// The script replaces itself by the node if the node may read input, which ERL_FLAGS then forbids: so the node is our child.
		"RABBITMQ_ALLOW_INPUT=true",
		"ERL_FLAGS=-noshell -noinput -kernel inet_dist_use_interface {127,0,0,1}",
		fmt.Sprintf("RABBITMQ_NODENAME=caisson-test-%d@localhost", r.port),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", freePort(t)),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(r.dir, "env.conf"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(r.dir, "rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(r.dir, "advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(r.dir, "enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(r.dir, "data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(r.dir, "log"),
	}
	return &process{daemon: daemon{dir: r.dir}, bin: bin, env: env}, nil
}

func (p *process) start(ctx context.Context) error {
	// RabbitMQ 3.10 sets three file handles aside for each quorum queue. With the usual limit of 1,024 a node that has 309 of them
	// accepts connections and never answers. The limit is not raised further than that, because Erlang makes tables of its size.
	const limits = `n=$(ulimit -Hn); [ "$n" != unlimited ] && [ "$n" -lt 65536 ] || n=65536; ulimit -n "$n"; exec "$0"`
	// The node outlives the context of the call that starts it.
	cmd := exec.Command("sh", "-c", limits, filepath.Join(p.bin, "rabbitmq-server")) //nolint:noctx // ended by stop, kill or the watchdog
	cmd.Env = p.env
	return p.begin(ctx, cmd)
}

// stop asks the node to end in order.
func (p *process) stop(ctx context.Context) error { return p.end(ctx, syscall.SIGTERM) }

func (p *process) ctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, p.env, filepath.Join(p.bin, "rabbitmqctl"), args...)
}

func (p *process) log(context.Context) string {
	files, _ := filepath.Glob(filepath.Join(p.dir, "log", "*.log"))
	var text []byte
	for _, name := range append(files, p.output()) {
		part, err := os.ReadFile(name)
		if err == nil {
			text = append(text, part...)
		}
	}
	return string(text)
}

func (p *process) remove(context.Context) error { return nil }
