package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/worker"
)

//go:embed config.yaml.tmpl
var configTemplate string

var moods = []mood{healthy, flaky, dead}

// scene holds what the story needs: receivers, the queue, a client, and the worker.
type scene struct {
	out    io.Writer
	start  time.Time
	target target
	dir    string
	temp   bool
	admin  string // address of the worker's admin server

	receivers map[mood]*receiver
	stack     *backends.Set
	client    *worker.Client
	tally     tally
	total     int // jobs for our own handler
	replayed  int

	stop   context.CancelFunc
	exited chan int
}

// open starts the receivers, writes the worker's configuration and opens the queue.
func open(ctx context.Context, at target, out io.Writer) (s *scene, err error) {
	s = &scene{out: out, start: time.Now(), dir: at.dir, receivers: make(map[mood]*receiver)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.target, err = at.complete(); err != nil {
		return s, err
	}
	if s.dir == "" {
		s.temp = true
		if s.dir, err = os.MkdirTemp("", "caisson-quickstart-"); err != nil {
			return s, err
		}
	}
	if err := s.claimDir(); err != nil {
		return s, err
	}
	var list []*receiver
	for _, m := range moods {
		if s.receivers[m], err = startReceiver(ctx, m); err != nil {
			return s, err
		}
		list = append(list, s.receivers[m])
	}
	if s.admin, err = freeAddress(ctx); err != nil {
		return s, err
	}
	if err := s.writeConfig(list); err != nil {
		return s, err
	}
	return s, s.openQueue(ctx)
}

// writeConfig writes the worker's configuration.
func (s *scene) writeConfig(receivers []*receiver) error {
	var text bytes.Buffer
	data := map[string]any{
		"Broker": s.target.broker, "URL": s.target.url, "Queue": s.target.queue, "File": s.queueFile(), "Admin": s.admin, "Receivers": receivers,
	}
	if err := template.Must(template.New("config").Parse(configTemplate)).Execute(&text, data); err != nil {
		return err
	}
	return os.WriteFile(s.configFile(), text.Bytes(), 0o600)
}

// openQueue opens what the configuration names, with an empty queue.
func (s *scene) openQueue(ctx context.Context) error {
	cfg, _, err := config.Load(config.Sources{File: s.configFile()})
	if err != nil {
		return err
	}
	if s.stack, err = backends.OpenSoon(ctx, cfg, backends.Create); err != nil {
		return err
	}
	if err := s.stack.Broker.CreateQueue(ctx, s.target.queue); err != nil {
		return err
	}
	if err := empty(ctx, s.stack.Broker, s.target.queue); err != nil {
		return err
	}
	s.client, err = worker.NewClient(worker.ClientConfig{Broker: s.stack.Broker, DefaultQueue: s.target.queue})
	return err
}

// claimDir makes the directory, and refuses one that holds an earlier run: its jobs have run, so none of them would run again.
func (s *scene) claimDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(s.queueFile()); err == nil {
		return fmt.Errorf("-dir: %s is there from an earlier run: remove it or name another directory", s.queueFile())
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *scene) queueFile() string { return filepath.Join(s.dir, "caisson.db") }

func (s *scene) configFile() string { return filepath.Join(s.dir, "caisson.yaml") }

func (s *scene) logFile() string { return filepath.Join(s.dir, "worker.log") }

// startWorker runs what `worker run --config caisson.yaml` runs, with one kind more.
func (s *scene) startWorker(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.exited = make(chan int, 1)
	go func() {
		log, err := os.Create(s.logFile())
		if err != nil {
			fmt.Fprintln(s.out, err)
			s.exited <- 1
			return
		}
		defer func() { _ = log.Close() }()
		s.exited <- app.Run(ctx, []string{"worker", "run", "--config", s.configFile()}, app.IO{Out: log, Err: log}, func(r *worker.Registry) error {
			worker.Handle(r, countEvent, s.tally.count)
			return nil
		})
	}()
}

// stopWorker stops it as SIGTERM would and wants a clean exit.
func (s *scene) stopWorker() error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	s.stop = nil
	if code := <-s.exited; code != 0 {
		log, _ := os.ReadFile(s.logFile())
		return fmt.Errorf("the worker exited with code %d; its log ends with:\n%s", code, log[max(0, len(log)-2000):])
	}
	return nil
}

func (s *scene) close() error {
	errs := []error{s.stopWorker()}
	for _, r := range s.receivers {
		if r != nil {
			errs = append(errs, r.close())
		}
	}
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	if s.temp {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
