package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/truncate"
)

// Encode returns r as status stores keep it. The encoding may gain fields: a reader ignores those that it does not know.
func Encode(r Report) ([]byte, error) {
	switch {
	case r.ID == "" || len(r.ID) > MaxName:
		return nil, fmt.Errorf("fleet report: id %q: use 1 to %d bytes", truncate.Cut(r.ID, MaxName), MaxName)
	case r.Sent.IsZero():
		return nil, errors.New("fleet report: sent is not set: set it to the time at which the report was made")
	}
	r.At, r.Now = time.Time{}, time.Time{}
	data, err := json.Marshal(r.bounded())
	if err != nil {
		return nil, fmt.Errorf("fleet report: %w", err)
	}
	return data, nil
}

// Decode reads what [Encode] made. at is when the status store took it and now when it is read, both by the store's clock: all times of the report are
// moved there.
func Decode(data []byte, at, now time.Time) (Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return Report{}, fmt.Errorf("fleet report of another version of the program: %w", err)
	}
	skew := at.Sub(r.Sent)
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(skew)
		}
	}
	move(&r.Started)
	move(&r.Sent)
	for i := range r.Destinations {
		move(&r.Destinations[i].Since)
		move(&r.Destinations[i].Next)
	}
	r.At, r.Now = at, now
	return r, nil
}
