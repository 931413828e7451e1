package signature

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed delivery. HTTP header names are case-insensitive.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// maxID bounds a webhook-id, in bytes.
const maxID = 200

// Sign returns the value of webhook-signature: one signature by each secret, in order, separated by spaces. id is the webhook-id and at the
// attempt's time, of which whole seconds count. body is what goes on the wire.
func Sign(secrets []Secret, id string, at time.Time, body []byte) (string, error) {
	if err := CheckID(id); err != nil {
		return "", err
	}
	if len(secrets) == 0 {
		return "", errors.New("secrets: none given: a delivery is signed by at least one")
	}
	head := signedHead(id, timestamp(at))
	list := make([]string, len(secrets))
	for i, s := range secrets {
		if s.IsZero() {
			return "", fmt.Errorf("secrets[%d] is empty: parse or generate one", i)
		}
		list[i] = s.sign(head, body)
	}
	return strings.Join(list, " "), nil
}

func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// signedHead is what is signed before the body.
func signedHead(id, timestamp string) []byte { return []byte(id + "." + timestamp + ".") }

// CheckID says what is wrong with a webhook-id: a dot, for one, would let bytes move between id, timestamp and body.
func CheckID(id string) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("event id of %d bytes: use 1 to %d", len(id), maxID)
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '.' {
			return fmt.Errorf("event id %q: byte %d is %q; use printable ASCII without spaces and dots", id, i, c)
		}
	}
	return nil
}
