package postgres

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// MaxPayload is the most bytes of a body that is also kept as jsonb.
const MaxPayload = 64 << 10

// The ways in which a body can be searched.
const (
	jsonNone   = 0 // it is no JSON
	jsonStored = 1 // it is kept as jsonb
	jsonOdd    = 2 // it is JSON that is large or that jsonb refuses: it is read and matched here
)

func jsonClass(body []byte) int16 {
	switch {
	case !json.Valid(body):
		return jsonNone
	case len(body) <= MaxPayload && storable(body):
		return jsonStored
	}
	return jsonOdd
}

// Limits far inside those of jsonb: numbers of up to 131072 digits before the point and 16383 behind it, and a depth that the
// server's stack bounds.
const (
	maxDepth    = 500
	maxDigits   = 1000
	maxExponent = 1000
)

// storable reports whether jsonb takes a body that is valid JSON, with the meaning that it has here.
func storable(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	depth := 0
	for i := 0; i < len(body); {
		switch c := body[i]; {
		case c == '"':
			end, ok := storableString(body, i+1)
			if !ok {
				return false
			}
			i = end
			continue
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			end := i
			for end < len(body) && bytes.IndexByte([]byte("+-.eE0123456789"), body[end]) >= 0 {
				end++
			}
			if !storableNumber(string(body[i:end])) {
				return false
			}
			i = end
			continue
		}
		i++
	}
	return true
}

func storableNumber(s string) bool {
	digits, exponent := s, "0"
	for i := range s {
		if s[i] == 'e' || s[i] == 'E' {
			digits, exponent = s[:i], s[i+1:]
			break
		}
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && len(digits) <= maxDigits && -maxExponent <= n && n <= maxExponent
}

// storableString returns the place behind the string whose inside begins at i. NUL and half of a surrogate pair are not storable.
func storableString(body []byte, i int) (end int, ok bool) {
	for ; body[i] != '"'; i++ {
		if body[i] != '\\' {
			continue
		}
		i++
		if body[i] != 'u' {
			continue
		}
		r := hexRune(body[i+1:])
		i += 4
		switch {
		case r == 0, r >= 0xdc00 && r <= 0xdfff:
			return 0, false
		case r >= 0xd800 && r <= 0xdbff:
			if body[i+1] != '\\' || body[i+2] != 'u' {
				return 0, false
			}
			if low := hexRune(body[i+3:]); low < 0xdc00 || low > 0xdfff {
				return 0, false
			}
			i += 6
		}
	}
	return i + 1, true
}

// hexRune reads the four digits of an escape.
func hexRune(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return 0 // cannot be: the body is valid
	}
	return rune(n)
}
