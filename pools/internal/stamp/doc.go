// Package stamp turns times into eight bytes: nanoseconds since the process started, monotonic where the caller's times are. Sums and
// products saturate.
package stamp
