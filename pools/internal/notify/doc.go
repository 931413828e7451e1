// Package notify calls a hook outside the locks of those who call it: one call at a time, in order. The hook may panic, and may
// call back.
package notify
