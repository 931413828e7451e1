package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// decoder returns the function that fills a job's payload, key, destination and number of attempts for kind k.
func decoder[T any](k Kind[T]) func(*Job) error {
	return func(job *Job) error {
		payload, err := decodePayload[T](job.Payload, k.Strict)
		if err != nil {
			return err
		}
		job.decoded = payload
		if job.Key == "" && k.Key != nil {
			job.Key = k.Key(payload)
		}
		if job.Destination == "" && k.Destination != nil {
			job.Destination = k.Destination(payload)
		}
		if k.Attempts != nil {
			if n := k.Attempts(job); n > 0 {
				job.MaxAttempts = n
			}
		}
		return nil
	}
}

// decodePayload reads exactly one JSON value, or passes bytes through.
func decodePayload[T any](data []byte, strict bool) (T, error) {
	var payload T
	switch p := any(&payload).(type) {
	case *[]byte:
		*p = data
		return payload, nil
	case *json.RawMessage:
		*p = data
		return payload, nil
	}
	if len(data) == 0 && !strict {
		return payload, nil // a job without a payload
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(&payload); err != nil {
		return payload, fmt.Errorf("payload is not a %T: %w", payload, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return payload, fmt.Errorf("payload has data after the JSON value, at byte %d", dec.InputOffset())
	}
	return payload, nil
}
