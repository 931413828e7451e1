package sqs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// defaultGroup is the group of publications to a FIFO queue that name none: they keep one order among themselves.
const defaultGroup = "caisson"

// groupID returns group as SQS takes it. Whatever it would refuse is replaced by its hash, so that one group stays one group.
func groupID(group string) string {
	if validID(group) {
		return group
	}
	sum := sha256.Sum256([]byte(group))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// dedupID names a publication. Without an id of its own it gets one that nothing else has: two publications are never taken for one by accident.
func dedupID(id string) string {
	if id != "" {
		return groupID(id)
	}
	return rand.Text()
}

// validID reports whether SQS takes s as a group or deduplication id: 1 to 128 letters, digits and punctuation of ASCII.
func validID(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if s[i] <= 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
