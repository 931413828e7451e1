// Package replay publishes dead letters again, each as the next run of its job.
//
// Guarantees:
//
//   - A message is published first and its entry marked after the confirmation. What was not confirmed stays dead.
//   - Bodies and headers are published as they were received; the envelope names the next run.
//   - A crash publishes at most one chunk again, with the same job ids, keys and runs, so that claims make it harmless.
//   - A replay may be cancelled, repeated, and run several times at once: no entry is published by two of them.
//   - Jobs whose key completed meanwhile are left out, as far as claims remember.
//
// [Replay.Run] works through the matching entries in chunks: reserve, choose, publish, mark. Entries that are not published stay reserved
// until the end, so that no chunk meets them twice.
package replay
