package jobcmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/worker"
)

// batchJobs and batchBytes bound what is published in one call, and so what is held in memory.
const (
	chunkJobs  = 500
	chunkBytes = 8 << 20
)

// source is a stream of jobs to enqueue.
type source struct {
	// next returns the next job and where it came from (a line or a number), or io.EOF.
	next func() (worker.NewJob, int, error)
}

// fromOne returns job n times. Several get ids of their own.
func fromOne(job worker.NewJob, n int) *source {
	made := 0
	return &source{next: func() (worker.NewJob, int, error) {
		if made == n {
			return worker.NewJob{}, 0, io.EOF
		}
		made++
		if n == 1 {
			return job, 1, nil
		}
		return numbered(job, made), made, nil
	}}
}

// fromLines returns job once for each line of r that is not empty, with the line as its payload. A final line end, also one with a
// carriage return, does not belong to the payload.
func fromLines(job worker.NewJob, r io.Reader) *source {
	in := bufio.NewReaderSize(r, 64<<10)
	line := 0
	return &source{next: func() (worker.NewJob, int, error) {
		for {
			text, err := in.ReadBytes('\n')
			line++
			if text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")); len(text) > 0 && (err == nil || errors.Is(err, io.EOF)) {
				one := numbered(job, line)
				one.Payload = text
				return one, line, nil
			}
			if err != nil {
				return worker.NewJob{}, line, err
			}
		}
	}}
}

func numbered(job worker.NewJob, n int) worker.NewJob {
	if job.ID != "" {
		job.ID = fmt.Sprintf("%s-%d", job.ID, n)
	}
	return job
}

// enqueue publishes all jobs in chunks and tells result about each, in order. Its error says what kept it from going on, or how many
// were not accepted.
func (j *source) enqueue(ctx context.Context, client *worker.Client, result func(number int, r worker.EnqueueResult) error) error {
	done, failed := 0, 0
	for {
		chunk, numbers, readErr := j.chunk()
		for i, r := range client.EnqueueMany(ctx, chunk) {
			done++
			if r.Err != nil {
				failed++
			}
			if err := result(numbers[i], r); err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted after %d jobs, %d of them not accepted", done, failed))
		case errors.Is(readErr, io.EOF):
			return outcome(done, failed)
		case readErr != nil:
			return fmt.Errorf("read payloads after %d jobs: %w", done, readErr)
		}
	}
}

func outcome(done, failed int) error {
	switch {
	case failed == 0:
		return nil
	case done == 1:
		return cli.Fail(cli.Failure, nil) // the result has said why
	case failed == done:
		return fmt.Errorf("none of %d jobs was accepted", done)
	}
	return cli.Fail(cli.Partial, fmt.Errorf("%d of %d jobs were not accepted", failed, done))
}

// chunk reads jobs up to the bounds of one chunk. It returns what it has together with the error that ends the stream.
func (j *source) chunk() ([]worker.NewJob, []int, error) {
	var chunk []worker.NewJob
	var numbers []int
	size := 0
	for len(chunk) < chunkJobs && size < chunkBytes {
		job, number, err := j.next()
		if err != nil {
			return chunk, numbers, err
		}
		if payload, ok := job.Payload.([]byte); ok {
			size += len(payload)
		}
		chunk, numbers = append(chunk, job), append(numbers, number)
	}
	return chunk, numbers, nil
}

// resultPrinter prints what became of each job.
type resultPrinter struct {
	io      cli.IO
	json    bool
	several bool
}

// enqueued is the JSON form of one result. Line is the line of --lines or the number of --count.
type enqueued struct {
	Line  int    `json:"line,omitempty"`
	ID    string `json:"id"`
	Queue string `json:"queue"`
	Error string `json:"error,omitempty"`
}

func (p resultPrinter) result(number int, r worker.EnqueueResult) error {
	out := enqueued{ID: r.ID, Queue: r.Queue}
	if p.several {
		out.Line = number
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	switch {
	case p.json:
		return cli.JSON(p.io.Out, out)
	case r.Err != nil && p.several:
		fmt.Fprintf(p.io.Err, "%d: %s\n", number, cli.Lines(out.Error))
		return nil
	case r.Err != nil:
		fmt.Fprintln(p.io.Err, cli.Lines(out.Error))
		return nil
	}
	if _, err := fmt.Fprintln(p.io.Out, r.ID); err != nil {
		return fmt.Errorf("print id: %w", err)
	}
	return nil
}
