package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
)

//go:embed testdata/github-events.jsonl.gz
var githubEvents []byte

// event is one webhook body, kept as it was recorded.
type event struct {
	Name    string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
}

// readEvents returns the recorded events.
func readEvents() ([]event, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(githubEvents))
	if err != nil {
		return nil, fmt.Errorf("recorded events: %w", err)
	}
	var list []event
	for r := bufio.NewReader(unzipped); ; {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("recorded event %d: %w", len(list)+1, err)
			}
			list = append(list, e)
		}
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("recorded events: %w", err)
		}
	}
}
