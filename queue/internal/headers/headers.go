package headers

import (
	"encoding/binary"
	"errors"
)

// Encode writes each key and value with its length before it, in no order. It is empty for no headers, and never nil.
func Encode(h map[string]string) []byte {
	size := 0
	for k, v := range h {
		size += len(k) + len(v) + 2*binary.MaxVarintLen32
	}
	buf := make([]byte, 0, size)
	for k, v := range h {
		buf = binary.AppendUvarint(buf, uint64(len(k)))
		buf = append(buf, k...)
		buf = binary.AppendUvarint(buf, uint64(len(v)))
		buf = append(buf, v...)
	}
	return buf
}

// ErrDamaged means that the data was not written by Encode.
var ErrDamaged = errors.New("stored headers are damaged")

// Decode is the inverse of Encode. All strings share one copy of data. Beside [ErrDamaged] it returns what comes before the damage.
func Decode(data []byte) (map[string]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	all := string(data)
	h := make(map[string]string, 1)
	next := func() (string, bool) {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width) { //nolint:gosec // width is positive and at most the length
			return "", false
		}
		start := len(all) - len(data) + width
		data = data[width+int(n):]             //nolint:gosec // at most the length
		return all[start : start+int(n)], true //nolint:gosec // at most the length
	}
	for len(data) > 0 {
		k, ok := next()
		if !ok {
			return h, ErrDamaged
		}
		v, ok := next()
		if !ok {
			return h, ErrDamaged
		}
		h[k] = v
	}
	return h, nil
}
