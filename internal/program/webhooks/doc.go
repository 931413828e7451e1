// Package webhooks makes of a configuration what a program needs for webhook deliveries: the guard, the endpoints of the file, the registry, and
// what runs beside a worker.
//
// What it guarantees:
//
//   - A worker and the commands make the same things of the same configuration: what one takes, the other takes.
//   - What is wrong with the configuration is refused by [Read], before anything is opened, with the key and the way out.
//   - A change of the registry reaches the worker's breakers and limits, and endpoints that are paused are paused before the worker takes its
//     first job, unless the registry cannot be read.
//
// [Read] reads the configuration; [Settings.Register] is for workers before their set is open, [Kind.Open] for after that.
// [Settings.OpenPublisher] is for programs that only publish.
package webhooks
