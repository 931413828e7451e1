package queue

import "strconv"

// Count is a number that a broker may not know. The zero value is unknown.
type Count struct {
	N     int64
	Known bool
}

// CountOf returns a known count.
func CountOf(n int64) Count { return Count{N: n, Known: true} }

// String returns the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.FormatInt(c.N, 10)
}

// MarshalJSON encodes an unknown count as null.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, c.N, 10), nil
}
