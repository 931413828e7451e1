// Package embedded is a durable queue in one SQLite file: no server, several processes on one machine.
//
// What survives what:
//
//   - A killed process (kill -9, crash, out of memory): everything that a call reported as done. Messages it had leased become
//     visible at the end of their leases, with the attempt charged. A publish that was cut may or may not be there.
//   - A power cut: every confirmed publish. With Sync "mixed" (the default) the last acks, retries, releases and receives may be
//     undone, which shows as redeliveries; with "full" they survive too, at about half the throughput.
//   - A full disk: publishes fail with [queue.ErrUnavailable] and say why; nothing that was confirmed is lost; acks that need no
//     new space still work; everything works again once there is space.
//   - A file copied or removed under a running process, a network file system, a disk that lies about flushing: nothing is promised.
//
// Beyond the contract of package queue:
//
//   - Messages come in the order in which they became visible, to the millisecond, then in publish order.
//   - A lease that has passed its deadline is lost even if nobody took the message. There is no reaper that could act on what it
//     read before: a lease is nothing but a due time in the future, and every statement that ends one names the delivery it is for.
//   - Attempts are counted by the broker: a receive charges one, an uncharged retry or release gives it back, a crash does not.
//   - A publish or release in the same process wakes a waiting Receive at once, one in another process within about 15 ms.
//   - The wall clock decides when messages become due: when it is set back, leases and delays last that much longer.
//
// A million waiting messages do not slow publishing, receiving or settling. Space of acked messages is used again, and given back
// to the disk while the file is idle.
package embedded
