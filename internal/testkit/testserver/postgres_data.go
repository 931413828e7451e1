package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// debianPostgres is where Debian's packages keep the programs, a directory for each version; they are not in PATH.
const debianPostgres = "/usr/lib/postgresql/*/bin/initdb"

// postgresPrograms returns the directory of the newest programs that match pattern, else of those in PATH.
func postgresPrograms(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	newest, best := "", -1
	for _, name := range found {
		bin := filepath.Dir(name)
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > best {
			newest, best = bin, version
		}
	}
	if newest != "" {
		return newest, nil
	}
	if name, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(name), nil
	}
	return "", errors.New("tests of faults start PostgreSQL clusters of their own, but its programs (initdb, postgres) are not installed " +
		"(run `make services` as root, or `apt-get install postgresql`; a server in Docker will not do)")
}

func (p *PostgresServer) data() string { return filepath.Join(p.dir, "data") }

// makeData makes the data directory. --no-sync is about its making alone.
func (p *PostgresServer) makeData(ctx context.Context, cfg PostgresConfig) error {
	if err := p.user.own(p.dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"), "--pgdata", p.data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	cmd.Dir, cmd.Env = p.dir, environment()
	p.user.runs(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	conf, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString(strings.Join(p.settings(cfg), "\n") + "\n")
	return errors.Join(err, conf.Close())
}

func (p *PostgresServer) settings(cfg PostgresConfig) []string {
	durable := "on"
	if cfg.Volatile {
		durable = "off"
	}
	return append([]string{
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", p.port),
		"unix_socket_directories = ''", // their paths may be too long
		"fsync = " + durable,
		"synchronous_commit = " + durable,
		"shared_buffers = 16MB",
		"max_connections = 100",
		"jit = off",
		"log_line_prefix = '%m [%p] %a '",
	}, cfg.Conf...)
}

// environment is what the server needs of the caller's. PGDATA and the like would redirect it.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC"}
}

func (p *PostgresServer) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if p.up {
		// Immediate: what it holds is of no more use, but it takes its shared memory with it.
		err = p.end(ctx, syscall.SIGQUIT)
		p.up = false
	} else {
		p.freeMemory(ctx)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// freeMemory frees the segment of 56 bytes by which a killed server knows whether its children still run. A server that starts again does so itself.
func (p *PostgresServer) freeMemory(ctx context.Context) {
	text, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return // it ended in order
	}
	var key, id string
	lines := strings.Split(string(text), "\n")
	const segment = 6 // the seventh line, see PostgreSQL's miscadmin.h
	if len(lines) <= segment {
		return
	}
	if n, _ := fmt.Sscan(lines[segment], &key, &id); n == 2 {
		_, _ = run(ctx, environment(), "ipcrm", "-m", id) // what is left is 56 bytes
	}
}
