package testserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// image is the one of deploy/services/compose.yaml.
const image = "rabbitmq:4.1.4"

// Inside the container, where ports are the node's alone.
const (
	amqpInside       = 5672
	managementInside = 15672
)

// container is a node that runs in Docker, where no server is installed.
type container struct {
	name    string
	create  []string // the arguments of docker create
	created bool
}

func newContainer(r *RabbitMQ, conf []string) (host, error) {
	listen := fmt.Sprintf("0.0.0.0:%d", amqpInside)
	lines := append([]string{"loopback_users.guest = false"}, conf...) // the published port is not the container's loopback
	if err := writeConfig(r, r.dir, listen, "0.0.0.0", managementInside, lines); err != nil {
		return nil, err
	}
	if err := os.Chmod(r.dir, 0o755); err != nil { // the container's user reads it
		return nil, err
	}
	c := &container{name: fmt.Sprintf("caisson-test-%d", r.port)}
	c.create = []string{
		"create", "--name", c.name, "--hostname", c.name,
		"--publish", fmt.Sprintf("%s:%d", r.Addr(), amqpInside),
		"--volume", filepath.Join(r.dir, "rabbitmq.conf") + ":/etc/rabbitmq/rabbitmq.conf:ro",
		"--volume", filepath.Join(r.dir, "advanced.config") + ":/etc/rabbitmq/advanced.config:ro",
		"--volume", filepath.Join(r.dir, "enabled_plugins") + ":/etc/rabbitmq/enabled_plugins:ro",
	}
	if r.management != 0 {
		c.create = append(c.create, "--publish", fmt.Sprintf("%s:%d", loopback(r.management), managementInside))
	}
	c.create = append(c.create, image)
	return c, nil
}

func (c *container) docker(ctx context.Context, args ...string) (string, error) {
	return run(ctx, os.Environ(), "docker", args...)
}

func (c *container) start(ctx context.Context) error {
	if !c.created {
		if _, err := c.docker(ctx, c.create...); err != nil {
			return err
		}
		c.created = true
	}
	_, err := c.docker(ctx, "start", c.name)
	return err
}

func (c *container) stop(ctx context.Context) error {
	_, err := c.docker(ctx, "stop", "-t", "50", c.name)
	return err
}

func (c *container) kill(ctx context.Context) error {
	if _, err := c.docker(ctx, "kill", c.name); err != nil {
		return err
	}
	_, err := c.docker(ctx, "wait", c.name)
	return err
}

func (c *container) alive(ctx context.Context) error {
	state, err := c.docker(ctx, "inspect", "--format", "{{.State.Status}}", c.name)
	if err != nil {
		return err
	}
	if state = strings.TrimSpace(state); state != "running" {
		return fmt.Errorf("container %s is %s", c.name, state)
	}
	return nil
}

func (c *container) ctl(ctx context.Context, args ...string) (string, error) {
	return c.docker(ctx, append([]string{"exec", c.name, "rabbitmqctl"}, args...)...)
}

func (c *container) log(ctx context.Context) string {
	text, err := c.docker(ctx, "logs", "--tail", "100", c.name)
	if err != nil {
		return err.Error()
	}
	return text
}

func (c *container) remove(ctx context.Context) error {
	if !c.created {
		return nil
	}
	_, err := c.docker(ctx, "rm", "--force", "--volumes", c.name)
	return err
}
