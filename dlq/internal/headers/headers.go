package headers

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Encode writes headers for a store, so that any bytes come back: the count, then each key and value with its length, in order of keys.
func Encode(headers map[string]string) []byte {
	if len(headers) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(len(headers)))
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		for _, s := range [2]string{key, headers[key]} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	return b
}

var errDamaged = errors.New("stored headers are damaged")

// Decode reads what [Encode] wrote.
func Decode(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errDamaged
	}
	b = b[n:]
	headers := make(map[string]string, count)
	for range count {
		var pair [2]string
		for i := range pair {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, errDamaged
			}
			pair[i] = string(b[n : n+int(size)])
			b = b[n+int(size):]
		}
		headers[pair[0]] = pair[1]
	}
	if len(b) > 0 || uint64(len(headers)) != count {
		return nil, errDamaged
	}
	return headers, nil
}
