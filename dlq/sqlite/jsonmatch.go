package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// SQLite's own JSON functions answer otherwise: for keys that come twice, large numbers and bytes that are not text. Statements ask ours.
func init() { sqlitefile.RegisterFunction("caisson_json_matches", 2, jsonMatches) }

// jsonMatches takes a body and JSON matches as JSON.
func jsonMatches(args []driver.Value) (driver.Value, error) {
	text, ok := args[1].(string)
	if !ok {
		return nil, fmt.Errorf("caisson_json_matches: matches are a %T, want text", args[1])
	}
	ms, err := lastMatches(text)
	if err != nil {
		return nil, err
	}
	body, ok := args[0].([]byte)
	return ok && jsonmatch.All(body, ms), nil // a NULL is the empty body
}

type parsedMatches struct {
	text string
	ms   []jsonmatch.Match
}

// parsed holds the matches of the last call: a statement asks for each row with the same ones.
var parsed atomic.Pointer[parsedMatches]

func lastMatches(text string) ([]jsonmatch.Match, error) {
	if p := parsed.Load(); p != nil && p.text == text {
		return p.ms, nil
	}
	p := &parsedMatches{text: string([]byte(text))} // the driver owns the bytes of text
	if err := json.Unmarshal([]byte(text), &p.ms); err != nil {
		return nil, fmt.Errorf("caisson_json_matches: %w", err)
	}
	parsed.Store(p)
	return p.ms, nil
}
