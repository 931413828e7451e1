package sqlitefile

import (
	"errors"
	"fmt"
	"time"
)

// Sync says which commits wait for the disk.
type Sync uint8

const (
	// Mixed waits for the disk only in commits that hold a durable write. A power cut may undo the others, newest first;
	// a killed process undoes none.
	Mixed Sync = iota
	// Full waits for the disk in every commit.
	Full
)

// String returns the mode as configuration spells it.
func (s Sync) String() string {
	switch s {
	case Mixed:
		return "mixed"
	case Full:
		return "full"
	}
	return fmt.Sprintf("sync(%d)", uint8(s))
}

// ParseSync is the inverse of String. The empty string is Mixed.
func ParseSync(s string) (Sync, error) {
	switch s {
	case "", "mixed":
		return Mixed, nil
	case "full":
		return Full, nil
	}
	return 0, fmt.Errorf("sync %q: use mixed or full", s)
}

// Config tunes a File.
type Config struct {
	// Path of the file, created if missing. Its directory must exist, on a local disk. Required.
	Path string
	// Sync says which commits wait for the disk. Zero means Mixed.
	Sync Sync
	// BusyTimeout is how long to try for a lock that another process holds. Zero means 10 s.
	BusyTimeout time.Duration
	// MaxSize bounds the file's size in bytes, write-ahead log excluded; a write that needs more fails with ErrFull. Zero
	// means as large as the disk.
	MaxSize int64
	// MaxBatch is the most writes that share a transaction. Zero means 256.
	MaxBatch int
	// Readers is the most Read calls that run at once; more wait. Zero means 4.
	Readers int
	// PollInterval is how often the commits of other processes are looked for while somebody watches; an idle process pays about
	// 1.5 % of a core for it. Zero means 15 ms.
	PollInterval time.Duration
	// IdleDelay is how long the file must be without writes before free pages are given back to the disk. Zero means 1 s.
	IdleDelay time.Duration
}

func (c Config) withDefaults() Config {
	if c.BusyTimeout == 0 {
		c.BusyTimeout = 10 * time.Second
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 256
	}
	if c.Readers == 0 {
		c.Readers = 4
	}
	if c.PollInterval == 0 {
		c.PollInterval = 15 * time.Millisecond
	}
	if c.IdleDelay == 0 {
		c.IdleDelay = time.Second
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Path == "":
		return errors.New("path is empty: name the database file")
	case c.Sync > Full:
		return fmt.Errorf("sync %d: use Mixed or Full", c.Sync)
	case c.MaxSize < 0:
		return fmt.Errorf("max size %d: must not be negative", c.MaxSize)
	case c.MaxBatch < 0 || c.Readers < 0:
		return fmt.Errorf("max batch %d, readers %d: must not be negative", c.MaxBatch, c.Readers)
	case c.BusyTimeout < 0 || c.PollInterval < 0 || c.IdleDelay < 0:
		return fmt.Errorf("busy timeout %v, poll interval %v, idle delay %v: must not be negative", c.BusyTimeout, c.PollInterval, c.IdleDelay)
	}
	return nil
}
