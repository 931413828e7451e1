package faultlab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

// Run is one run of a handler as the ledger saw it. End is zero if it was cut.
type Run struct {
	Key     string    `json:"key"`
	Run     int       `json:"run"`
	Attempt int       `json:"attempt"`
	Token   int64     `json:"token"`
	PID     int       `json:"pid"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end,omitzero"`
	OK      bool      `json:"ok,omitzero"`
}

// Book is one process's part of the ledger: a file with one line when a run starts and one when it ends.
type Book struct {
	file  *os.File
	ended atomic.Int64
}

// OpenBook opens the book of this process in dir.
func OpenBook(dir string) (*Book, error) {
	file, err := os.OpenFile(bookName(dir, os.Getpid()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Book{file: file}, nil
}

// bookName is where the book of a process is.
func bookName(dir string, pid int) string {
	return filepath.Join(dir, "ledger-"+strconv.Itoa(pid)+".jsonl")
}

// Close closes the file.
func (b *Book) Close() error { return b.file.Close() }

// Ended is how many runs have ended.
func (b *Book) Ended() int { return int(b.ended.Load()) }

func (b *Book) write(r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = b.file.Write(append(line, '\n')) // one write a line: a kill cannot cut it
	return err
}

// readBooks returns the runs in the books of all processes that wrote to dir.
func readBooks(dir string) ([]Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "ledger-*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no ledger files in %s: %w", dir, err)
	}
	type id struct {
		key     string
		attempt int
		token   int64
		pid     int
	}
	var runs []Run
	byID := make(map[id]int)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var r Run
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				continue // the last line of a killed process may be cut
			}
			key := id{r.Key, r.Attempt, r.Token, r.PID}
			if i, seen := byID[key]; seen && !r.End.IsZero() {
				runs[i] = r
				continue
			}
			byID[key] = len(runs)
			runs = append(runs, r)
		}
	}
	return runs, nil
}
