package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// PostgresConfig is what a cluster may differ in.
type PostgresConfig struct {
	// Volatile runs the cluster without fsync and with synchronous_commit off. By default a commit is on disk.
	Volatile bool
	// Conf are further lines of postgresql.conf, such as "max_connections = 10".
	Conf []string
}

// PostgresServer is a PostgreSQL cluster of the test's own: it may be stopped, killed and reconfigured. It listens on the loopback only, trusts
// everybody there, and keeps its address and its data over restarts.
//
// Its methods belong to the test's own goroutine, because they fail the test.
type PostgresServer struct {
	daemon

	bin  string // the directory of the server's programs
	port int
	up   bool
}

// StartPostgres starts a cluster of the test's own and removes it with the test. It takes about two seconds.
func StartPostgres(t testing.TB) *PostgresServer {
	t.Helper()
	return StartPostgresWith(t, PostgresConfig{})
}

// StartPostgresWith is [StartPostgres] with a configuration.
func StartPostgresWith(t testing.TB, cfg PostgresConfig) *PostgresServer {
	t.Helper()
	p := newPostgres(t, cfg)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of PostgreSQL ends with:\n%s", lastLines(p.log(context.WithoutCancel(t.Context())), 50))
		}
		if err := p.remove(); err != nil {
			t.Errorf("remove the PostgreSQL cluster: %v", err)
		}
	})
	p.Start(t)
	return p
}

func newPostgres(t testing.TB, cfg PostgresConfig) *PostgresServer {
	t.Helper()
	bin, err := postgresPrograms(debianPostgres)
	if err != nil {
		t.Fatal(err)
	}
	account, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its parents are for the caller alone, and PostgreSQL may run as another user.
	dir, err := os.MkdirTemp("", "caisson-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	p := &PostgresServer{daemon: daemon{dir: dir, user: account}, bin: bin, port: freePort(t)}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := p.makeData(ctx, cfg); err != nil {
		t.Fatal(errors.Join(fmt.Errorf("make a PostgreSQL cluster: %w", err), os.RemoveAll(dir)))
	}
	return p
}

// URL returns the connection URL of the cluster's first database, as its superuser.
func (p *PostgresServer) URL() string {
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: p.Addr(), Path: "/postgres", RawQuery: "sslmode=disable"}).String()
}

// Addr returns the host and port, as [StartProxy] wants them.
func (p *PostgresServer) Addr() string { return loopback(p.port) }

// Start starts the cluster after [PostgresServer.Stop] or [PostgresServer.Kill] and returns when it takes connections, so after recovery.
func (p *PostgresServer) Start(t testing.TB) {
	t.Helper()
	if p.up {
		t.Fatal("the PostgreSQL cluster runs already")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := p.launch(ctx); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

func (p *PostgresServer) launch(ctx context.Context) error {
	cmd := exec.Command(filepath.Join(p.bin, "postgres"), "-D", p.data()) //nolint:noctx // ended by Stop, Kill or the watchdog
	cmd.Env = environment()
	if err := p.begin(ctx, cmd); err != nil {
		return err
	}
	p.up = true
	return await(ctx, p, p)
}

func (p *PostgresServer) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	u, err := url.Parse(p.URL())
	if err != nil {
		return err
	}
	return askPostgres(ctx, u)
}

// Stop ends the cluster in order (pg_ctl's fast mode), as an operator does who restarts it: transactions are rolled back.
func (p *PostgresServer) Stop(t testing.TB) {
	t.Helper()
	p.down(t, func(ctx context.Context) error { return p.end(ctx, syscall.SIGINT) })
}

// Kill kills the server and all of its children (SIGKILL), as a machine does that loses its power. What was committed is on disk.
func (p *PostgresServer) Kill(t testing.TB) {
	t.Helper()
	p.down(t, p.kill)
}

// Restart is [PostgresServer.Stop] and [PostgresServer.Start].
func (p *PostgresServer) Restart(t testing.TB) {
	t.Helper()
	p.Stop(t)
	p.Start(t)
}

func (p *PostgresServer) down(t testing.TB, how func(context.Context) error) {
	t.Helper()
	if !p.up {
		t.Fatal("the PostgreSQL cluster does not run")
	}
	ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
	defer cancel()
	if err := how(ctx); err != nil {
		t.Fatalf("end PostgreSQL: %v", err)
	}
	p.up = false
}
