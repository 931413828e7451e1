package embedded

import (
	"errors"
	"fmt"
)

// Config tunes a broker.
type Config struct {
	// Path of the file, created if missing. Its directory must exist, on a local disk. All that this process opens by the same path share
	// the file, such as claims and dead letters. ":memory:" means a queue in memory, for tests; what follows these eight characters is the
	// name by which others in this process share it. Required.
	Path string
	// Sync says which commits wait for the disk: "mixed" only publishes, "full" all. Empty follows the file if this process has it open
	// already, else it means "mixed".
	Sync string
	// MaxSize bounds the file's size in bytes; writes beyond it fail with queue.ErrUnavailable. Completed keys and dead letters in the
	// same file count as well, for as long as they are kept: leave room for them. Zero follows the file if this process has it open already,
	// else it means as large as the disk.
	MaxSize int64
	// MaxBody is the largest message in bytes, headers included. Zero means 16 MiB; at most 512 MiB.
	MaxBody int
}

const (
	defaultMaxBody = 16 << 20
	largestMaxBody = 512 << 20 // SQLite ends at 1 GB per row
)

func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	return c
}

func (c Config) validate() error {
	if c.Path == "" {
		return errors.New("path is empty: name the queue's file")
	}
	if c.MaxBody < 0 || c.MaxBody > largestMaxBody {
		return fmt.Errorf("max body %d: must be between 1 and %d bytes", c.MaxBody, largestMaxBody)
	}
	return nil
}
