package postgres

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The values of a statement in PostgreSQL's binary format, and back. They are written by hand: a batch has a dozen columns, and the general
// encoders cost more than the rest of the client's work.

// epoch is where PostgreSQL's timestamps begin.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// values are the parameters of one statement.
type values [][]byte

func (v *values) int8(x int64) { *v = append(*v, binary.BigEndian.AppendUint64(nil, uint64(x))) } //nolint:gosec // two's complement

// array begins an array of n elements of about size bytes each.
func array(oid uint32, n, size int) []byte {
	b := make([]byte, 0, 20+n*(4+size))
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1) // there may be NULLs
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // a batch
	return binary.BigEndian.AppendUint32(b, 1)      // lower bound
}

// null is the length of a NULL.
const null = 0xffffffff

func uuids[T any](v *values, items []T, of func(*T) id) {
	b := array(pgtype.UUIDOID, len(items), 16)
	for k := range items {
		b = binary.BigEndian.AppendUint32(b, 16)
		i := of(&items[k])
		b = append(b, i[:]...)
	}
	*v = append(*v, b)
}

// byteas adds bytes; nil is NULL.
func byteas[T any, B ~string | ~[]byte](v *values, items []T, of func(*T) (b B, null bool)) {
	size := 0
	if len(items) > 0 {
		first, _ := of(&items[0])
		size = len(first)
	}
	b := array(pgtype.ByteaOID, len(items), size)
	for k := range items {
		x, isNull := of(&items[k])
		if isNull {
			b = binary.BigEndian.AppendUint32(b, null)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(x))) //nolint:gosec // the driver refuses more
		b = append(b, x...)
	}
	*v = append(*v, b)
}

func int4s[T any](v *values, items []T, of func(*T) (x int32, null bool)) {
	b := array(pgtype.Int4OID, len(items), 4)
	for k := range items {
		x, isNull := of(&items[k])
		if isNull {
			b = binary.BigEndian.AppendUint32(b, null)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(x)) //nolint:gosec // two's complement
	}
	*v = append(*v, b)
}

func int8s[T any](v *values, items []T, oid uint32, of func(*T) (x int64, null bool)) {
	b := array(oid, len(items), 8)
	for k := range items {
		x, isNull := of(&items[k])
		if isNull {
			b = binary.BigEndian.AppendUint32(b, null)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(x)) //nolint:gosec // two's complement
	}
	*v = append(*v, b)
}

func bools[T any](v *values, items []T, of func(*T) bool) {
	b := array(pgtype.BoolOID, len(items), 1)
	for k := range items {
		b = binary.BigEndian.AppendUint32(b, 1)
		if of(&items[k]) {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	*v = append(*v, b)
}

func times[T any](v *values, items []T, of func(*T) time.Time) {
	int8s(v, items, pgtype.TimestamptzOID, func(item *T) (int64, bool) {
		t := of(item)
		return t.UnixMicro() - epoch, t.IsZero()
	})
}

// Reading. A nil value is NULL.

func readInt(b []byte) int64 {
	switch len(b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b))) //nolint:gosec // two's complement
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // two's complement
	case 8:
		return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // two's complement
	}
	return 0
}

func readTime(b []byte) time.Time {
	if len(b) != 8 {
		return time.Time{}
	}
	return time.UnixMicro(readInt(b) + epoch)
}

func readBool(b []byte) bool { return len(b) == 1 && b[0] == 1 }

// readIDs reads an array of uuid without NULLs.
func readIDs(b []byte) []id {
	if len(b) < 20 {
		return nil // no dimension: empty
	}
	ids := make([]id, 0, (len(b)-20)/20)
	for b = b[20:]; len(b) >= 20; b = b[20:] {
		ids = append(ids, id(b[4:20]))
	}
	return ids
}
