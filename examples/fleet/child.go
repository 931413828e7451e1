package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// roleVariable is set in the processes that this program starts itself as.
const roleVariable = "CAISSON_FLEET_ROLE"

// part is what one of these processes does.
type part interface {
	// status is asked for while it runs.
	status() any
	// end stops it and returns what it has to report.
	end() (any, error)
}

// roles start the parts. What they return beside the part is told to the parent.
var roles = map[string]func(context.Context, plan) (part, any, error){
	"receiver": startReceiver,
	"sender":   startSender,
	"worker":   startWorker,
}

const (
	askStatus = "status"
	askEnd    = "end"
)

// play is the life of a child: it reads the plan, starts its part, answers questions, and ends when it is told to or its parent is gone.
func play(role string, in io.Reader, out io.Writer) error {
	start, ok := roles[role]
	if !ok {
		return fmt.Errorf("%s=%s: this variable is for the program's own processes: unset it", roleVariable, role)
	}
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	var p plan
	if err := questions.Decode(&p); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	actor, ready, err := start(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	if err := answers.Encode(ready); err != nil {
		return err
	}
	for {
		var question string
		if err := questions.Decode(&question); err != nil {
			return errors.Join(fmt.Errorf("%s: the parent is gone: %w", role, err), ended(actor))
		}
		if question == askStatus {
			if err := answers.Encode(actor.status()); err != nil {
				return err
			}
			continue
		}
		report, err := actor.end()
		if err != nil {
			return fmt.Errorf("%s: %w", role, err)
		}
		return answers.Encode(report)
	}
}

func ended(actor part) error {
	_, err := actor.end()
	return err
}

// child is one of these processes as its parent sees it.
type child struct {
	role      string
	cmd       *exec.Cmd
	in        io.WriteCloser
	questions *json.Encoder
	answers   *json.Decoder
	gone      bool
}

// start runs this program in a role and waits until it is ready.
func start(ctx context.Context, role string, p plan, ready any) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{role: role, cmd: exec.CommandContext(ctx, self)}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.questions, c.answers = json.NewEncoder(c.in), json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := c.questions.Encode(p); err != nil {
		return nil, errors.Join(err, c.kill())
	}
	if err := c.answers.Decode(ready); err != nil {
		return nil, errors.Join(fmt.Errorf("the %s did not start: %w", role, err), c.kill())
	}
	return c, nil
}

// ask asks how it goes.
func (c *child) ask(answer any) error { return c.talk(askStatus, answer) }

func (c *child) talk(question string, answer any) error {
	err := c.questions.Encode(question)
	if err == nil {
		err = c.answers.Decode(answer)
	}
	if err != nil {
		return fmt.Errorf("the %s does not answer: %w", c.role, err)
	}
	return nil
}

// finish ends the child and reads its report.
func (c *child) finish(report any) error {
	if err := c.talk(askEnd, report); err != nil {
		return errors.Join(err, c.kill())
	}
	c.gone = true
	if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
		return fmt.Errorf("the %s ended: %w", c.role, err)
	}
	return nil
}

// cpu is what a child that was finished has used.
func (c *child) cpu() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// kill ends a child that was not finished, after an error.
func (c *child) kill() error {
	if c == nil || c.gone {
		return nil
	}
	c.gone = true
	_ = c.cmd.Process.Kill() // it may be gone already
	_ = c.cmd.Wait()         // it says that it was killed
	return nil
}
