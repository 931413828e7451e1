package embedded

import (
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Config tunes a broker.
type Config struct {
	// Path of the file, created if missing. Its directory must exist, on a local disk. Required by Open.
	Path string
	// Sync says which commits wait for the disk: "mixed" only publishes, "full" all. Empty means "mixed". Ignored by OnFile.
	Sync string
	// MaxSize bounds the file's size in bytes; writes beyond it fail with queue.ErrUnavailable. Completed keys and dead letters in the
	// same file count as well, for as long as they are kept: leave room for them. Zero means as large as the disk. Ignored by OnFile.
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
	if c.MaxBody < 0 || c.MaxBody > largestMaxBody {
		return fmt.Errorf("max body %d: must be between 1 and %d bytes", c.MaxBody, largestMaxBody)
	}
	return nil
}

// file translates c for the owner of the file.
func (c Config) file() (sqlitefile.Config, error) {
	sync, err := sqlitefile.ParseSync(c.Sync)
	if err != nil {
		return sqlitefile.Config{}, err
	}
	if c.Path == "" {
		return sqlitefile.Config{}, errors.New("path is empty: name the queue's file")
	}
	return sqlitefile.Config{Path: c.Path, Sync: sync, MaxSize: c.MaxSize}, nil
}
