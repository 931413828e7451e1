package sqlitefile

import (
	"errors"
	"fmt"
	"time"
)

// Sync says which commits wait for the disk, as configuration spells it. Empty means that of the file as it is open, else [SyncMixed].
type Sync string

const (
	// SyncMixed waits for the disk only in commits that hold a durable write. A power cut may undo the others, newest first;
	// a killed process undoes none.
	SyncMixed Sync = "mixed"
	// SyncFull waits for the disk in every commit.
	SyncFull Sync = "full"
)

// Config tunes a File. Where this process has the file open already, Sync and MaxSize must be the same or zero, and the rest is ignored.
type Config struct {
	// Path of the file, created if missing. Its directory must exist, on a local disk. ":memory:" means a database in memory; what
	// follows these eight characters is its name, by which others in this process open the same one. Required.
	Path string
	// Sync says which commits wait for the disk. Empty means SyncMixed.
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
	if c.Sync == "" {
		c.Sync = SyncMixed
	}
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
		return errors.New("path is empty: name the file")
	case c.Sync != "" && c.Sync != SyncMixed && c.Sync != SyncFull:
		return fmt.Errorf("sync %q: use mixed or full", c.Sync)
	case c.MaxSize < 0:
		return fmt.Errorf("max size %d: must not be negative", c.MaxSize)
	case c.MaxBatch < 0 || c.Readers < 0:
		return fmt.Errorf("max batch %d, readers %d: must not be negative", c.MaxBatch, c.Readers)
	case c.BusyTimeout < 0 || c.PollInterval < 0 || c.IdleDelay < 0:
		return fmt.Errorf("busy timeout %v, poll interval %v, idle delay %v: must not be negative", c.BusyTimeout, c.PollInterval, c.IdleDelay)
	}
	return nil
}

// follows returns an error if c asks for another sync or size than the file is open with. The rest is the first user's to choose.
func (c Config) follows(open Config) error {
	if c.Sync != "" && c.Sync != open.Sync {
		return fmt.Errorf("sync %q: this process has the file open with %q: give each user of the file the same sync, or none", c.Sync, open.Sync)
	}
	if c.MaxSize != 0 && c.MaxSize != open.MaxSize {
		return fmt.Errorf("max size %d: this process has the file open with %d: give each user of the file the same max size, or none", c.MaxSize, open.MaxSize)
	}
	return nil
}
