package embedded

import "encoding/binary"

// encodeHeaders writes each key and value with its length before it: any bytes pass, and text stays legible to a person who
// opens the file.
func encodeHeaders(h map[string]string) []byte {
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

// decodeHeaders is the inverse of encodeHeaders. All strings share one copy of data. Of a damaged column it returns what comes
// before the damage: a message without its envelope ends in the dead letters, an error here would block the queue.
func decodeHeaders(data []byte) map[string]string {
	if len(data) == 0 {
		return nil
	}
	all := string(data)
	h := make(map[string]string, 1)
	next := func() (string, bool) {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width) {
			return "", false
		}
		start := len(all) - len(data) + width
		data = data[width+int(n):]
		return all[start : start+int(n)], true
	}
	for len(data) > 0 {
		k, ok := next()
		if !ok {
			break
		}
		v, ok := next()
		if !ok {
			break
		}
		h[k] = v
	}
	return h
}
